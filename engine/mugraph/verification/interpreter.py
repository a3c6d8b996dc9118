"""Triton's interpreter computes bfloat16 as a GPU does after `patch_interpreter`, and takes kernels that other people
wrote: numbers as arguments, functions of libdevice, several configurations."""

from __future__ import annotations

from dataclasses import replace
from types import SimpleNamespace
from typing import Any

from mugraph.ir.block import PRECISIONS, TF32
from mugraph.verification.interpreter_places import remember_places
from mugraph.verification.interpreter_shapes import remember_shapes
from mugraph.verification.interpreter_speed import patch_once_a_launch, without_discarded_assertions
from mugraph.verification.interpreter_sums import sum_in_a_tree


def patch_interpreter() -> None:
    """Mend five things: `tl.dot` multiplies the raw bits of bfloat16, and takes all bits of a float32 where tf32 is
    asked for; and a conversion between float32 and bfloat16 cuts off where a GPU rounds to the nearest, and gives other
    numbers for the smallest ones; and conversions between float8 types and others do that, and have no NaN; and sums
    along any axis but the last add one number after the other."""
    import numpy as np
    import triton.language as tl
    from triton.runtime import interpreter

    builder: Any = interpreter.InterpreterBuilder
    handle: Any = interpreter.TensorHandle

    def widened(bits: Any) -> Any:
        return (bits.astype(np.uint32) << 16).view(np.float32)

    def narrowed(data: Any) -> Any:
        """To the nearest, ties to even; NaN stays NaN."""
        bits = np.ascontiguousarray(data, np.float32).view(np.uint32)
        rounded = (bits + 0x7FFF + ((bits >> 16) & 1)) >> 16
        return np.where(np.isnan(data), 0x7FC0, rounded).astype(np.uint16)

    def as_float32(operand: Any) -> Any:
        if operand.dtype.scalar == tl.bfloat16:
            return widened(operand.data.view(np.uint16))
        return operand.data.astype(np.float32)

    def cut(data: Any) -> Any:
        """To tf32, as tensor cores do: they do not round."""
        bits = np.ascontiguousarray(data, np.float32).view(np.uint32)
        return np.where(np.isnan(data), data, (bits & np.uint32(0xFFFFE000)).view(np.float32))

    dot, cast = builder.create_dot, builder.cast_impl

    def create_dot(self: Any, a: Any, b: Any, d: Any, *rest: Any) -> Any:
        if {a.dtype.scalar, b.dtype.scalar} <= {tl.bfloat16, tl.float16, tl.float32}:
            operands = as_float32(a), as_float32(b)
            if rest[0].name == TF32.upper():
                operands = tuple(map(cut, operands))
            product = np.matmul(*operands) + d.data
            return handle(product.astype(d.data.dtype), d.dtype.scalar)
        return dot(self, a, b, d, *rest)

    def cast_impl(self: Any, src: Any, dst_type: Any) -> Any:
        match src.dtype.scalar, dst_type.scalar:
            case tl.bfloat16, tl.float32:
                return handle(widened(src.data.view(np.uint16)), tl.float32)
            case tl.float32, tl.bfloat16:
                return handle(narrowed(src.data), tl.bfloat16)
            case _:
                return cast(self, src, dst_type)

    builder.create_dot, builder.cast_impl = create_dot, cast_impl
    _take_float8(interpreter)
    patch_once_a_launch(interpreter)
    without_discarded_assertions(interpreter)
    remember_places(interpreter)
    remember_shapes(interpreter)
    sum_in_a_tree(interpreter)
    _take_precisions(interpreter)
    _take_numbers(interpreter)
    _take_libdevice(interpreter)
    _take_waits()
    _take_configurations()


def _take_float8(interpreter: Any) -> None:
    """To the nearest number, ties to even; what is larger than the largest number becomes that one, as on a GPU."""
    import numpy as np
    import torch
    import triton.language as tl

    builder: Any = interpreter.InterpreterBuilder
    convert = builder.create_fp_to_fp
    types: dict[Any, torch.dtype] = {
        tl.float32: torch.float32,
        tl.float16: torch.float16,
        tl.bfloat16: torch.bfloat16,
        tl.float8e4nv: torch.float8_e4m3fn,
        tl.float8e5: torch.float8_e5m2,
    }

    def create_fp_to_fp(self: Any, src: Any, dst_type: Any, rounding_mode: Any) -> Any:
        before, after = types.get(src.dtype.scalar), types.get(dst_type.scalar)
        if before is None or after is None or 1 not in (before.itemsize, after.itemsize):
            return convert(self, src, dst_type, rounding_mode)
        raw = torch.as_tensor(np.array(src.data)).view(before).float()
        if after.itemsize == 1:
            largest = torch.finfo(after).max
            raw = raw.clamp(-largest, largest)
        bits = torch.uint8 if after.itemsize == 1 else torch.int16
        numbers = raw.to(after)
        data = numbers.numpy() if after == torch.float32 else numbers.view(bits).numpy()
        return interpreter.TensorHandle(data.view(interpreter._get_np_dtype(dst_type)), dst_type.scalar)

    builder.create_fp_to_fp = create_fp_to_fp


def _take_precisions(interpreter: Any) -> None:
    """Those of NVIDIA's compiler."""
    options = interpreter.interpreter_builder.options
    interpreter.interpreter_builder.options = replace(options, allowed_dot_input_precisions=PRECISIONS)


def _take_numbers(interpreter: Any) -> None:
    """A number that is an argument is a float32, as on a GPU, and no number of Python."""
    import numpy as np
    import triton.language as tl

    converted: Any = interpreter._implicit_cvt

    def convert(argument: Any) -> Any:
        if isinstance(argument, float):
            handle = interpreter.TensorHandle(np.array([argument], np.float32), tl.float32)
            return tl.tensor(handle, tl.float32)
        return converted(argument)

    def made(self: Any, value: Any) -> Any:
        """tl.float32(0.0)"""
        if hasattr(value, "handle"):
            return value.to(self)
        kind = interpreter._get_np_dtype(self)
        return tl.tensor(interpreter.TensorHandle(np.array([value], kind), self), self)

    interpreter._implicit_cvt = convert
    tl.dtype.__call__ = made


def _take_libdevice(interpreter: Any) -> None:
    """Of a GPU's library, which the interpreter does not have."""
    import math

    import numpy as np
    import triton.language as tl
    from triton.language.extra import libdevice

    def made(function: Any) -> Any:
        def on_tiles(*tiles: Any, **_: Any) -> Any:
            shape = np.broadcast_shapes(*(tile.handle.data.shape for tile in tiles))
            data = [np.broadcast_to(tile.handle.data, shape) for tile in tiles]
            found = np.asarray(function(*data)).astype(tiles[0].handle.data.dtype)
            kind = tiles[0].type
            if found.shape != tiles[0].handle.data.shape:
                kind = tl.block_type(kind.scalar, list(found.shape))
            return tl.tensor(interpreter.TensorHandle(found, tiles[0].type.scalar), kind)

        return on_tiles

    def inverse_root(x: Any) -> Any:
        return 1 / np.sqrt(x)

    functions: dict[str, Any] = {
        name: getattr(np, name)
        for name in ("tanh", "exp", "exp2", "expm1", "log", "log1p", "log2", "sqrt", "sin", "cos", "floor", "ceil")
    }
    functions |= {
        "rint": np.rint,
        "nearbyint": np.rint,
        "rsqrt": inverse_root,
        "erf": np.vectorize(math.erf, otypes=[np.float64]),
        "pow": np.power,
        "fast_expf": np.exp,
        "fast_logf": np.log,
        "fast_tanhf": np.tanh,
    }
    for name, function in functions.items():
        setattr(libdevice, name, made(function))


def _take_waits() -> None:
    """Of kernels that start before the one before them has ended: here one runs after the other, and what is asked to
    come into a cache is where it is."""
    import numpy as np
    import triton.language as tl
    from triton.language.extra import cuda
    from triton.runtime import interpreter

    builder: Any = interpreter.InterpreterBuilder

    def assembly(self: Any, asm: str, constraints: str, values: Any, types: Any, *_: Any) -> Any:
        if not asm.startswith("prefetch.global.L2 "):
            raise NotImplementedError("inline_asm not supported in interpreter mode")
        shape: tuple[int, ...] = values[0].data.shape
        found = interpreter.TensorHandle(np.zeros(shape, np.int32), tl.int32)

        def result(number: int) -> Any:
            return found

        return SimpleNamespace(get_result=result)

    builder.create_inline_asm = assembly

    def nothing(**_: Any) -> None:
        """There is nobody to wait for, or to tell."""

    for name in ("gdc_wait", "gdc_launch_dependents"):
        setattr(cuda, name, nothing)


def _take_configurations() -> None:
    """The first one: without a GPU there is nothing to time."""
    from triton.runtime import autotuner

    def run(self: Any, *args: Any, **kwargs: Any) -> Any:
        self.nargs = dict(zip(self.arg_names, args, strict=False))
        return self.fn.run(*args, **kwargs, **self.configs[0].all_kwargs())

    autotuner.Autotuner.run = run
