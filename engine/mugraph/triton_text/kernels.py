"""The language of kernels: a run of some blocks, side by side."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from typing import Any

import numpy as np
from numpy.typing import NDArray

from mugraph.kinds import Kind as Kinds
from mugraph.triton_text import block_pointers
from mugraph.triton_text.accesses import Accesses
from mugraph.triton_text.approximations import NUMBERS_OF, ON_BYTES
from mugraph.triton_text.arrivals import Arrival
from mugraph.triton_text.functions import FUNCTIONS, METHODS, indexed, permute
from mugraph.triton_text.handles import BlockPointer, Method, PointerKind, Range, range_of
from mugraph.triton_text.hosts import host_builtin, host_math, number_of
from mugraph.triton_text.ints import Bools, Ints, number
from mugraph.triton_text.language import Loop, is_host
from mugraph.triton_text.python import Evaluator
from mugraph.triton_text.reals import Reals
from mugraph.triton_text.refusals import Diverges, Unreadable, Wrong
from mugraph.triton_text.running import Launch, block_ids
from mugraph.triton_text.source import Function, Named
from mugraph.triton_text.tiles import (
    FLOATS,
    Floats,
    Kind,
    Pointers,
    is_known,
    refuse_raw,
)
from mugraph.triton_text.uneven import UnevenLoop
from mugraph.triton_text.waits import STARTS_NEXT, WAITS

_KINDS = (*FLOATS, "int1", "int8", "int16", "int32", "int64", "uint8", "uint16", "uint32", "uint64")
_AS_THEY_ARE = (
    "tl.cast", "tl.expand_dims", "tl.broadcast_to", "tl.broadcast", "tl.permute", "tl.trans", "tl.reshape", "tl.view",
    "tl.ravel", "tl.constexpr", "tl.multiple_of", "tl.max_contiguous", "tl.max_constancy", "tl.zeros_like",
    "tl.device_print", *(f"mugraph.{kind.name}" for kind in Kinds if kind.opaque is not None and kind.opaque.is_truth),
    *NUMBERS_OF, *ON_BYTES,
)  # fmt: skip
"""Functions that take numbers of a type that nothing is computed in. (A comparison does not wrap around.)"""
_RANGES = ("builtins.range", "tl.range", "tl.static_range")
_AXES = {"x": 0, "y": 1, "z": 2}


class Run(Accesses):
    """Some blocks of a launch. reals: None to look at addresses only"""

    def __init__(self, launch: Launch, blocks: NDArray[np.int64], reals: Reals | None) -> None:
        super().__init__(launch, blocks, reals)
        self.evaluator = Evaluator(self)

    def execute(self) -> None:
        self.evaluator.run(self.launch.function, (), self.launch.arguments)
        self.waiting.check_end(self.launch.line)
        self.arriving.check_end(self.launch.line)

    @property
    def line(self) -> int:
        return self.evaluator.line

    # --- Language

    def binary(self, op: str, a: Any, b: Any) -> Any:
        if isinstance(a, Kind | PointerKind | Named) or isinstance(b, Kind | PointerKind | Named):
            if op in ("==", "!="):
                return (a == b) == (op == "==")
            raise Unreadable(f"{op} of types is not read")
        if isinstance(a, Arrival):
            return a.compared(op, b)
        if op in ("==", "!=") and (a is None or b is None):
            return op == "!="
        return self._counted(self.of.binary(op, a, b))

    def unary(self, op: str, a: Any) -> Any:
        return self.of.negative(a) if op == "-" else self.of.inverted(a)

    def attribute(self, owner: Any, name: str) -> Any:
        if isinstance(owner, Named):
            last = owner.name.rsplit(".", 1)[-1]
            known = number_of(owner.name)
            if known is not None:
                return known
            if owner.name.startswith(("tl.", "torch.")) and last in _KINDS:
                return Kind(last)
            return owner
        match owner, name:
            case Floats() | Ints(), "dtype" | "type":
                return Kind(owner.kind)
            case Bools(), "dtype" | "type":
                return Kind("int1")
            case Pointers(), "dtype" | "type":
                return PointerKind(Kind(owner.memory.kind))
            case Kind(), "scalar" | "element_ty":
                return owner
            case PointerKind(), "scalar":
                return owner
            case PointerKind(), "element_ty":
                return owner.element_ty
            case Floats() | Ints() | Bools() | Pointers(), "shape":
                return owner.shape
            case Floats() | Ints() | Bools(), "T":
                return permute(self.of, owner)
            case Floats() | Ints() | Bools() | Kind() | BlockPointer() | PointerKind() | Pointers(), _:
                return Method(owner, name)
            case _ if name == "value" and is_host(owner):
                return owner
            case _ if name == "to" and is_host(owner):
                return Method(self.of.tile(owner), name)
            case _:
                raise Unreadable(f"{name} of {type(owner).__name__} is not read")

    def subscript(self, owner: Any, key: Any) -> Any:
        if isinstance(owner, Ints | Bools | Floats | Pointers):
            return indexed(self.of, owner, key)
        raise Unreadable(f"an element of {type(owner).__name__} is taken")

    def truth(self, value: Any) -> bool:
        if isinstance(value, Kind | Method | BlockPointer | PointerKind | Function):
            return True
        tile = self.of.bools(value)
        if tile.shape != () or not is_known(tile):
            raise Unreadable("what is done depends on floating-point numbers or on a whole tile")
        return bool(self._one(tile.whole().astype(np.int64)))

    def _one(self, found: NDArray[np.int64]) -> int:
        """The number that all blocks have. Raises Diverges."""
        if (found != found.reshape(-1)[0]).any():
            raise Diverges(found.reshape(-1))
        return int(found.reshape(-1)[0])

    def host(self, value: Any) -> Any:
        """An integer that all blocks have as a number of Python."""
        if isinstance(value, Ints) and value.shape == () and is_known(value):
            return self._one(value.whole())
        return value

    def loop(self, iterable: Any) -> Iterable[Any] | Loop:
        if not isinstance(iterable, Range):
            raise Unreadable("a loop over what is no range")
        ends = [iterable.start, iterable.stop, iterable.step]
        if any(isinstance(end, Ints) for end in ends):
            start, stop, step = (self.of.ints(end).whole() for end in ends)
            if (step == 0).any():
                raise Wrong("values", "a loop has a step of zero")
            counts = np.maximum(-(-(stop - start) // step), 0)
            varies = start.size > 1 or step.size > 1
            try:
                count = self._one(counts)
            except Diverges:
                if self.of.reals is not None or self.inside is not None or self.arriving.is_last:
                    raise

                def value(at: int) -> Any:
                    return Ints((), (start + step * at,)) if varies else int(start[0]) + int(step[0]) * at

                return UnevenLoop(self, counts.reshape(-1), value)
            if varies:
                return (Ints((), (start + step * at,)) for at in range(count))
            return range(int(start[0]), int(start[0]) + count * int(step[0]), int(step[0]))
        if not all(isinstance(end, int) for end in ends):
            raise Unreadable("the ends of a loop are no integers")
        return range(*ends)

    def call(self, function: Any, arguments: Sequence[Any], named: Mapping[str, Any]) -> Any:
        match function:
            case Function():
                return self.evaluator.called(function, arguments, named)
            case Method(owner, name):
                return self._method(owner, name, arguments, named)
            case Named(name):
                return self._named(name, arguments, named)
            case Kind(name):
                return self.of.cast(arguments[0], name)
            case _:
                raise Unreadable(f"{type(function).__name__} is called")

    def _method(self, owner: Any, name: str, arguments: Sequence[Any], named: Mapping[str, Any]) -> Any:
        match owner:
            case Kind() if name in ("is_floating", "is_fp16", "is_fp32", "is_bf16", "is_int"):
                kinds = {"is_fp16": "float16", "is_fp32": "float32", "is_bf16": "bfloat16"}
                return owner.is_float == (name == "is_floating") if name not in kinds else owner.name == kinds[name]
            case BlockPointer() if name == "load":
                return self._block_load(block_pointers.at(owner, arguments[0]))
            case BlockPointer() if name == "store":
                return self._block_store(block_pointers.at(owner, arguments[0]), arguments[1])
            case Pointers() if name == "to":
                return owner
            case _ if name in METHODS:
                return self._named(METHODS[name], [owner, *arguments], named)
            case _:
                raise Unreadable(f"the method {name} is not read")

    def _named(self, name: str, arguments: Sequence[Any], named: Mapping[str, Any]) -> Any:
        own = _OWN.get(name)
        if own is not None:
            return getattr(self, own)(*arguments, **named)
        if name in _BLOCK_POINTERS:
            return _BLOCK_POINTERS[name](*arguments, **named)
        if name in WAITS:
            self._check_all()
            return self.waiting.wait()
        if name in STARTS_NEXT:
            return None
        if name in _RANGES:
            return range_of(arguments, named)
        if name.startswith("builtins."):
            return self._builtin(name.removeprefix("builtins."), arguments, named)
        if name.startswith("math."):
            return host_math(name, arguments)
        if name in FUNCTIONS:
            if name not in _AS_THEY_ARE:
                refuse_raw(*arguments, *named.values())
            return self._counted(FUNCTIONS[name](self.of, *arguments, **named))
        raise Unreadable(f"{name} is not read")

    def _builtin(self, name: str, arguments: Sequence[Any], named: Mapping[str, Any]) -> Any:
        if all(is_host(one) for one in arguments):
            return host_builtin(name, arguments)
        match name:
            case "min" | "max":
                found = arguments[0]
                for other in arguments[1:]:
                    found = FUNCTIONS["tl.minimum" if name == "min" else "tl.maximum"](self.of, found, other)
                return found
            case "len":
                return arguments[0].shape[0]
            case "abs":
                return FUNCTIONS["tl.abs"](self.of, arguments[0])
            case "float":
                return self.of.cast(arguments[0], "float32")
            case _:
                raise Unreadable(f"{name} of a tile is not read")

    # --- blocks

    def program_id(self, axis: Any, **_: Any) -> Ints:
        found = Ints((), (block_ids(self.blocks, self.launch.grid, int(axis)),))
        if self.arriving.is_last:
            every = block_ids(np.arange(self.launch.blocks), self.launch.grid, int(axis))
            self.arriving.check_place(int(axis), found, Ints((), (every,)))
        return found

    def num_programs(self, axis: Any, **_: Any) -> Ints:
        return number(self.launch.grid[int(axis)])


_BLOCK_POINTERS: Mapping[str, Callable[..., BlockPointer]] = {
    "tl.make_block_ptr": block_pointers.block_pointer,
    "tl.make_tensor_descriptor": block_pointers.descriptor,
    "tl._experimental_make_tensor_descriptor": block_pointers.descriptor,
}
_OWN = {
    "tl.load": "load",
    "tl.store": "store",
    "tl.atomic_add": "atomic_add",
    "tl.program_id": "program_id",
    "tl.num_programs": "num_programs",
    "tl.debug_barrier": "barrier",
    "tl.inline_asm_elementwise": "assembly",
    "tl.advance": "advance",
}
