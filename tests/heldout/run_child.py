"""Runs a program, and the same program with kernels written into it, on the CPU; prints their errors as JSON.

A process of its own, because TRITON_INTERPRET must be set before triton is imported. Arguments: the original file, the
edited one, the edited one's kernel module.

For each function and class with a `# mugraph:` comment: {"same": the edited code without a kernel gives the bits of the
original, "error", "eager": the kernel's and the original's ||out - ref|| / ||ref|| with ref in float64, the largest of
all results, "launches": the kernels that ran, ...}.
"""

from __future__ import annotations

import ast
import importlib.util
import json
import re
import sys
import zlib
from collections.abc import Iterator
from itertools import pairwise
from pathlib import Path
from types import ModuleType
from typing import Any

import torch
from mugraph.verification.interpreter import patch_interpreter
from torch import nn
from torch.utils._python_dispatch import TorchDispatchMode

DTYPES = {
    "f16": torch.float16, "bf16": torch.bfloat16, "f32": torch.float32, "bool": torch.bool, "i8": torch.int8,
    "u8": torch.uint8, "i64": torch.int64, "i32": torch.int32, "f8e4m3": torch.float8_e4m3fn,
    "f8e5m2": torch.float8_e5m2, "c64": torch.complex64,
}  # fmt: skip
_CLASSES = 24
"""Fewer than any program has."""
ARGUMENT = re.compile(r"(\w+)=(\w+)\[([^\]]*)\]")


def load(path: Path) -> ModuleType:
    spec = importlib.util.spec_from_file_location(path.stem, path)
    assert spec is not None
    assert spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    sys.modules[path.stem] = module
    spec.loader.exec_module(module)
    return module


def entries(path: Path) -> Iterator[tuple[str, list[tuple[str, str, list[int]]]]]:
    """Name, and (argument, type, shape) of each."""
    source = path.read_text()
    lines = source.splitlines()
    for node in ast.parse(source).body:
        if not isinstance(node, ast.FunctionDef | ast.ClassDef):
            continue
        said = lines[min(one.lineno for one in (node, *node.decorator_list)) - 2]
        if said.startswith("# mugraph: "):
            found = ARGUMENT.findall(said)
            yield node.name, [(name, kind, [int(size) for size in shape.split(",")]) for name, kind, shape in found]


def made(module: ModuleType, name: str, seed: int) -> Any:
    """The function, or an instance whose parameters are all drawn: zeros and ones would hide what uses them."""
    target = getattr(module, name)
    if not isinstance(target, type):
        return target
    instance: nn.Module = target().eval()
    generator = torch.Generator().manual_seed(seed)
    for called, tensor in (*instance.named_parameters(), *instance.named_buffers()):
        if tensor.dtype.itemsize == 1 and tensor.dtype is not torch.bool:
            tensor.data.copy_(drawn(list(tensor.shape), tensor.dtype, generator))
        if not is_wide(tensor):  # a mask stays what it is
            continue
        scale = 1.0 / tensor.shape[-1] ** 0.5 if tensor.dim() > 1 else 0.5
        numbers = torch.randn(tensor.shape, generator=generator) * scale
        tensor.data.copy_(0.5 + numbers.abs() if called.endswith("running_var") else numbers)
    return instance


Results = tuple[torch.Tensor, ...]


def tensors(result: torch.Tensor | Results | None) -> Results:
    if result is None:
        return ()
    return (result,) if isinstance(result, torch.Tensor) else result


def outcome(program: Any, inputs: list[torch.Tensor]) -> Results:
    """What the program returns, and what is in its buffers and its arguments afterwards, which are copies."""
    inputs = [tensor.clone() for tensor in inputs]
    results = tensors(program(*inputs))
    kept = [*program.buffers(), *inputs] if isinstance(program, nn.Module) else inputs
    return (*results, *(tensor.clone() for tensor in kept if is_wide(tensor)))


def distance(results: Results, references: Results) -> float:
    """The largest of all results of types that PyTorch computes in."""
    pairs = [(one, other) for one, other in zip(results, references, strict=True) if is_wide(one)]
    return max((float((one.double() - other).norm() / other.norm()) for one, other in pairs), default=0.0)


def other_codes(results: Results, references: Results) -> float:
    """The largest part of a result of eight bits that is another number; 1 where a number is further than a step of
    int8 away, or than one of a float8 type."""
    worst = 0.0
    for one, other in zip(results, references, strict=True):
        if is_wide(one) or one.dtype is torch.bool:
            continue
        apart = (one.double() - other.double()).abs().nan_to_num(nan=torch.inf)
        apart = torch.where(one.double().isnan() & other.double().isnan(), 0.0, apart)
        step = 1.0 if not one.is_floating_point() else torch.finfo(one.dtype).eps * other.double().abs().clamp_min(0.02)
        worst = max(worst, 1.0 if bool((apart > step).any()) else float((apart > 0).double().mean()))
    return worst


def compare(original: ModuleType, edited: ModuleType, kernels: ModuleType, name: str, shapes: Any) -> dict[str, Any]:
    seed = zlib.crc32(name.encode())
    generator = torch.Generator().manual_seed(seed)
    inputs = [drawn(shape, DTYPES[kind], generator) for _, kind, shape in shapes]
    before, after = made(original, name, seed), made(edited, name, seed)
    eager, fallback = outcome(before, inputs), outcome(after, inputs)
    with InDoubles():
        if isinstance(before, nn.Module):
            before._apply(lambda tensor: tensor.double() if is_wide(tensor) else tensor)
        reference = outcome(before, [tensor.double() if is_wide(tensor) else tensor for tensor in inputs])
    launches: list[str] = []
    own = dict(vars(kernels))
    for launcher in [key for key in own if key.startswith("launch_")]:
        setattr(kernels, launcher, counted(own[launcher], launcher, launches))
    kernels._tested_gpu = lambda kind, index: True
    with_kernels = outcome(after, inputs)
    vars(kernels).update(own)
    every = list(zip(eager, fallback, with_kernels, strict=True))
    return {
        "same": all(torch.equal(one, two) and one.dtype == two.dtype == three.dtype for one, two, three in every),
        "shape": all(one.shape == three.shape for one, _, three in every),
        "strides": all(strides(one) == strides(three) for one, _, three in every),
        "error": distance(with_kernels, reference),
        "eager": distance(eager, reference),
        "rounding": max((torch.finfo(one.dtype).eps for one in eager if is_wide(one)), default=0.0),
        "codes": other_codes(with_kernels, reference),
        "eager_codes": other_codes(eager, reference),
        "launches": launches,
    }


def drawn(shape: list[int], kind: torch.dtype, generator: torch.Generator) -> torch.Tensor:
    """Normal numbers; whole ones of all that there are, or of the first classes; of conditions one in two holds."""
    if kind.is_complex:
        return torch.randn(shape, generator=generator, dtype=kind)
    numbers = torch.randn(shape, generator=generator)
    if kind in (torch.int64, torch.int32):
        return torch.randint(_CLASSES, shape, generator=generator, dtype=kind)
    if kind in (torch.int8, torch.uint8):
        return torch.randint(torch.iinfo(kind).min, torch.iinfo(kind).max + 1, shape, generator=generator, dtype=kind)
    return numbers > 0 if kind is torch.bool else numbers.to(kind)


def is_wide(tensor: torch.Tensor) -> bool:
    """Has it a type that PyTorch computes in?"""
    return tensor.is_floating_point() and tensor.dtype.itemsize > 1


def scaled_product(
    a: torch.Tensor, b: torch.Tensor, scale_a: Any, scale_b: Any, bias: Any = None, *_: Any, **__: Any
) -> torch.Tensor:
    found = (a.double() @ b.double()) * scale_a * scale_b
    return found if bias is None else found + bias


def scaled_by_recipe(
    a: Any, b: Any, scale_a: Any, recipe_a: Any, swizzle_a: Any, scale_b: Any, recipe_b: Any, swizzle_b: Any, bias: Any,
    *_: Any,
) -> torch.Tensor:  # fmt: skip
    return scaled_product(a, b, *scale_a, *scale_b, bias)


def grouped_product(a: torch.Tensor, b: torch.Tensor, offs: Any = None, **_: Any) -> torch.Tensor:
    """Rows of `a` in groups that end where `offs` says, all of them in one; or matrices of both."""
    if offs is None:
        return a @ b
    ends = [0, *offs.tolist()]
    return torch.cat([a[first:end] @ matrix for (first, end), matrix in zip(pairwise(ends), b, strict=True)])


SPELLED_OUT = {
    "_scaled_mm.default": scaled_product, "_scaled_mm_v2.default": scaled_by_recipe,
    "_grouped_mm.default": grouped_product,
}  # fmt: skip


class InDoubles(TorchDispatchMode):
    """Whatever floating-point type is asked for, float64 is made; what PyTorch does not have in it is spelled out."""

    def __torch_dispatch__(self, func: Any, types: Any, args: Any = (), kwargs: Any = None) -> Any:
        kwargs = dict(kwargs or {})
        if func.__name__ in SPELLED_OUT:
            return SPELLED_OUT[func.__name__](*args, **kwargs)
        if kwargs.get("dtype") in (torch.float16, torch.bfloat16, torch.float32):
            kwargs["dtype"] = torch.float64
        return func(*args, **kwargs)


def strides(tensor: torch.Tensor) -> list[int]:
    """Of dimensions of more than one element: of the others a stride says nothing."""
    return [stride for size, stride in zip(tensor.shape, tensor.stride(), strict=True) if size > 1]


def counted(launch: Any, name: str, launches: list[str]) -> Any:
    def run(*tensors: torch.Tensor) -> Any:
        launches.append(name)
        return launch(*tensors)

    return run


def main() -> None:
    original_path, edited_path, kernels_path = (Path(argument) for argument in sys.argv[1:])
    patch_interpreter()
    sys.path.insert(0, str(edited_path.parent))
    original = load(original_path)
    kernels = load(kernels_path)
    edited = load(edited_path)
    with torch.no_grad():
        print(json.dumps({n: compare(original, edited, kernels, n, shapes) for n, shapes in entries(original_path)}))


if __name__ == "__main__":
    main()
