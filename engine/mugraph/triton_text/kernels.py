"""The language of kernels: a run of some blocks, side by side."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import replace
from math import prod
from typing import Any

import numpy as np
from numpy.typing import NDArray

from mugraph.kinds import Kind as Kinds
from mugraph.triton_text.approximations import NUMBERS_OF, ON_BYTES
from mugraph.triton_text.arithmetic import Arithmetic
from mugraph.triton_text.arrivals import Arrival, Arriving
from mugraph.triton_text.bits import BitArithmetic, Bits
from mugraph.triton_text.functions import FUNCTIONS, METHODS, indexed, permute
from mugraph.triton_text.handles import BlockPointer, Method, Nothing, PointerKind, Range, range_of
from mugraph.triton_text.hosts import host_builtin, host_math, number_of
from mugraph.triton_text.ints import Bools, Ints, every, number, of_blocks, total
from mugraph.triton_text.language import Loop, is_host
from mugraph.triton_text.loads import loaded, whole_numbers
from mugraph.triton_text.memory import Memory
from mugraph.triton_text.python import Evaluator
from mugraph.triton_text.reals import Reals
from mugraph.triton_text.refusals import Diverges, Unreadable, Wrong
from mugraph.triton_text.running import Launch, block_ids
from mugraph.triton_text.source import Function, Named, listed
from mugraph.triton_text.tiles import (
    CODES,
    FLOATS,
    MADE,
    RAW,
    Floats,
    Kind,
    Pointers,
    Tile,
    common,
    is_known,
    of_shape,
    refuse_raw,
)
from mugraph.triton_text.uneven import UnevenLoop
from mugraph.triton_text.waits import PREFETCH, STARTS_NEXT, WAITS, Waiting

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


class Run:
    """Some blocks of a launch. reals: None to look at addresses only"""

    def __init__(self, launch: Launch, blocks: NDArray[np.int64], reals: Reals | None) -> None:
        self.launch, self.blocks = launch, blocks
        takes_tf32 = launch.world.takes_tf32
        self.of = BitArithmetic(reals) if isinstance(reals, Bits) else Arithmetic(reals, takes_tf32=takes_tf32)
        self.evaluator = Evaluator(self)
        self._stored: set[Memory] = set()
        self.waiting = Waiting(launch.function.name, launch.start)
        self.inside: NDArray[np.intp] | None = None
        self.apart: NDArray[np.int64] | None = None
        self.arriving = Arriving(launch.function.name, launch.arrivals, blocks, surveys=reals is None)

    def execute(self) -> None:
        self.evaluator.run(self.launch.function, (), self.launch.arguments)
        self.waiting.check_end(self.launch.line)
        self.arriving.check_end(self.launch.line)

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
                return self._block_load(self._at(owner, arguments[0]))
            case BlockPointer() if name == "store":
                return self._block_store(self._at(owner, arguments[0]), arguments[1])
            case Pointers() if name == "to":
                return owner
            case _ if name in METHODS:
                return self._named(METHODS[name], [owner, *arguments], named)
            case _:
                raise Unreadable(f"the method {name} is not read")

    def _at(self, block: BlockPointer, offsets: Any) -> BlockPointer:
        return BlockPointer(block.base, block.shape, block.strides, tuple(offsets), block.block, True)

    def _named(self, name: str, arguments: Sequence[Any], named: Mapping[str, Any]) -> Any:
        own = _MEMORY.get(name)
        if own is not None:
            return getattr(self, own)(*arguments, **named)
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

    def _counted(self, tile: Any) -> Any:
        if isinstance(tile, Ints | Bools | Floats | Pointers):
            size = prod(tile.shape)
            if self.of.reals is None:
                self.launch.largest = max(self.launch.largest, size)
            elif isinstance(tile, Floats):
                self.launch.world.elements += size * len(self.blocks)
        return tile

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

    def barrier(self) -> None:
        self._check_all()
        self._stored.clear()

    # --- memory

    def _check_all(self) -> None:
        """Raises Diverges where only some of the blocks do what is next."""
        if self.inside is not None:
            assert self.apart is not None
            raise Diverges(self.apart)

    def load(
        self, pointer: Any, mask: Any = None, other: Any = None, boundary_check: Any = (), padding_option: Any = "",
        cache_modifier: Any = "", eviction_policy: Any = "", volatile: Any = False,
    ) -> Tile:  # fmt: skip
        if isinstance(pointer, BlockPointer):
            return self._block_load(pointer, boundary_check)
        if not isinstance(pointer, Pointers):
            raise Wrong("type", "what is loaded from is no pointer")
        offsets, where = self._access(pointer, mask)
        memory, blocks, shape = pointer.memory, self.blocks, offsets.shape
        self.check_read(memory)
        if self.of.reals is None:
            if memory.data is not None:
                self._check_all()
            read, masked = offsets, where
            if self.inside is not None:
                blocks = blocks[self.inside]
                read = replace(read, parts=tuple(of_blocks(part, self.inside) for part in read.parts))
                if masked is not None:
                    masked = replace(masked, parts=tuple(of_blocks(part, self.inside) for part in masked.parts))
            self.launch.check_bounds(memory, read, masked, blocks, "reads")
            own, last = memory in self._stored, self.arriving.is_last
            self.launch.check_read(memory, read, masked, blocks, own=own, last=last)
        kind = memory.kind
        if memory.data is None and kind not in (*FLOATS, *RAW):
            raise Unreadable(f"whole numbers are read from {memory.name}, of which nothing is known")
        if memory.data is not None:
            return whole_numbers(memory, offsets, where, other)
        if self.of.reals is None:
            return Floats(shape, kind, None)
        real = loaded(self.launch, self.of, self.blocks, memory, offsets, where, other, last=self.arriving.is_last)
        return self._counted(Floats(shape, kind, real))

    def store(
        self, pointer: Any, value: Any, mask: Any = None, boundary_check: Any = (), cache_modifier: Any = "",
        eviction_policy: Any = "",
    ) -> None:  # fmt: skip
        if isinstance(pointer, BlockPointer):
            self._block_store(pointer, value, boundary_check)
            return
        self._check_all()
        if not isinstance(pointer, Pointers):
            raise Wrong("type", "what is stored to is no pointer")
        if self.arriving.is_counter(pointer.memory):
            self.waiting.check_write(pointer.memory.name)
            self.arriving.set_back(pointer, value, mask)
            return
        self.arriving.check_store(pointer.memory)
        tile = self.of.tile(value)
        shape = common(pointer.shape, tile.shape)
        moved = of_shape(pointer, shape)
        assert isinstance(moved, Pointers)
        offsets, where = self._access(moved, mask)
        memory = pointer.memory
        self.waiting.check_write(memory.name)
        made = MADE.get(memory.kind, "")
        if made and isinstance(tile, Floats) and tile.kind in ("float32", memory.kind, made):
            self.launch.world.whole.add(memory)
        elif memory.kind not in (*FLOATS, *CODES):
            raise Unreadable(f"whole numbers are stored to {memory.name}")
        if self.of.reals is None:
            self.launch.check_bounds(memory, offsets, where, self.blocks, "writes")
            if not self.launch.again:
                self.launch.mark(memory, offsets, where, self.blocks, self.evaluator.line)
            self._stored.add(memory)
            return
        layer = memory.of_step(self.launch.number)
        assert layer is not None
        found = of_shape(self.of.stored(value, memory.kind), offsets.shape)
        assert isinstance(found, Floats)
        assert found.real is not None
        full = (len(self.blocks), *offsets.shape)
        places = np.broadcast_to(offsets.whole(), full)
        on = None if where is None else np.broadcast_to(where.whole(), full)

        def lanes(array: NDArray[Any]) -> NDArray[Any]:
            spread = np.broadcast_to(array, full)
            return spread.reshape(-1) if on is None else spread[on]

        layer.put(lanes(places), found.real.each(lanes))

    def atomic_add(self, pointer: Any, val: Any, mask: Any = None, sem: Any = None, scope: Any = None) -> Any:
        """A sum is the same in any order; what was there before depends on the order, and may not be used."""
        self._check_all()
        if not isinstance(pointer, Pointers):
            raise Wrong("type", "what is added to is no pointer")
        if self.arriving.is_counter(pointer.memory):
            if self.apart is not None:  # blocks that count themselves are asked what each name stands for
                raise Diverges(self.apart)
            self.waiting.check_write(pointer.memory.name)
            return self.arriving.add(pointer, val, mask, sem, scope, self._stored)
        self.arriving.check_store(pointer.memory)
        shape = common(pointer.shape, self.of.tile(val).shape)
        moved = of_shape(pointer, shape)
        assert isinstance(moved, Pointers)
        offsets, where = self._access(moved, mask)
        memory, launch = pointer.memory, self.launch
        self.waiting.check_write(memory.name)
        if memory.kind not in FLOATS:
            raise Unreadable(f"whole numbers are added to {memory.name}")
        if self.of.reals is None:
            launch.check_bounds(memory, offsets, where, self.blocks, "adds to")
            if not memory.is_written(launch.number):
                raise Wrong("unwritten", f"blocks add to {memory.name}, not all of which was written before")
            if not launch.again:
                launch.mark_added(memory, offsets, where, self.blocks, self.evaluator.line)
            return Nothing()
        layer = memory.of_step(launch.number)
        assert layer is not None
        value = of_shape(self.of.floats(val), offsets.shape)
        assert isinstance(value, Floats)
        assert value.real is not None
        if value.real.state is not None:
            raise Wrong("values", f"what is no number is added to {memory.name}")
        full = (len(self.blocks), *offsets.shape)
        places = np.broadcast_to(offsets.whole(), full)
        on = np.ones(full, np.bool_) if where is None else np.broadcast_to(where.whole(), full)
        layer.add(places[on], value.real.each(lambda array: np.broadcast_to(array, full)[on]))
        return Nothing()

    def assembly(self, asm: Any, constraints: Any, args: Any, *_: Any, **__: Any) -> Nothing:
        """Memory that is asked for, as if all were read, but that it need not be there."""
        self._check_all()
        pointer = next(iter(listed(args)), None)
        if not isinstance(asm, str) or not PREFETCH.fullmatch(asm) or not isinstance(pointer, Pointers):
            raise Unreadable("tl.inline_asm_elementwise is not read, but where it asks for memory")
        offsets, where = self._access(pointer, None)
        self.check_asked(pointer.memory, offsets, where)
        return Nothing()

    def check_asked(self, memory: Memory, offsets: Ints, where: Bools | None) -> None:
        if self.of.reals is None:
            self.launch.check_bounds(memory, offsets, where, self.blocks, "asks for")

    def check_read(self, memory: Memory) -> None:
        """Raises Wrong."""
        self.waiting.check_read(memory.name, is_given=memory.source is not None and not memory.layers)

    def _access(self, pointer: Pointers, mask: Any) -> tuple[Ints, Bools | None]:
        if not is_known(pointer.offsets):
            raise Unreadable(f"an address in {pointer.memory.name} depends on floating-point numbers")
        if mask is None or mask is True:
            return pointer.offsets, None
        where = self.of.bools(mask)
        if not is_known(where):
            raise Unreadable(f"a mask for {pointer.memory.name} depends on floating-point numbers")
        shape = common(pointer.shape, where.shape)
        offsets, where = of_shape(pointer.offsets, shape), of_shape(where, shape)
        assert isinstance(offsets, Ints)
        assert isinstance(where, Bools)
        return offsets, where

    # --- block pointers

    def make_block_ptr(self, base: Any, shape: Any, strides: Any, offsets: Any, block_shape: Any, order: Any) -> Any:
        return BlockPointer(base, tuple(shape), tuple(strides), tuple(offsets), tuple(block_shape))

    def make_descriptor(self, base: Any, shape: Any, strides: Any, block_shape: Any, **_: Any) -> Any:
        return BlockPointer(base, tuple(shape), tuple(strides), (0,) * len(shape), tuple(block_shape), True)

    def advance(self, base: Any, offsets: Any) -> BlockPointer:
        moved = tuple(
            a + b if is_host(a) and is_host(b) else self.of.binary("+", a, b)
            for a, b in zip(base.offsets, offsets, strict=True)
        )
        return BlockPointer(base.base, base.shape, base.strides, moved, base.block, base.checked)

    def _block_load(self, block: BlockPointer, boundary_check: Any = ()) -> Tile:
        pointers, mask = self._lanes(block, boundary_check)
        return self.load(pointers, mask, 0.0 if mask is not None else None)

    def _block_store(self, block: BlockPointer, value: Any, boundary_check: Any = ()) -> None:
        pointers, mask = self._lanes(block, boundary_check)
        self.store(pointers, value, mask)

    def _lanes(self, block: BlockPointer, boundary_check: Any) -> tuple[Pointers, Bools | None]:
        rank = len(block.block)
        checked = range(rank) if block.checked else tuple(boundary_check or ())
        base = of_shape(block.base, block.block)
        assert isinstance(base, Pointers)
        parts: list[NDArray[np.int64]] = [*base.offsets.parts]
        conditions: list[NDArray[np.bool_]] = []
        for at in range(rank):
            along = np.arange(block.block[at]).reshape(1, *(-1 if d == at else 1 for d in range(rank)))
            first, size, stride = (
                self.of.ints(v).whole().reshape(-1, *(1,) * rank)
                for v in (block.offsets[at], block.shape[at], block.strides[at])
            )
            parts.append((first + along) * stride)
            if at in checked:
                conditions.append((first + along >= 0) & (first + along < size))
        offsets = total(block.block, parts, "int64")
        mask = every(block.block, conditions) if conditions else None
        return Pointers(base.memory, offsets), mask


_MEMORY = {
    "tl.load": "load",
    "tl.store": "store",
    "tl.atomic_add": "atomic_add",
    "tl.program_id": "program_id",
    "tl.num_programs": "num_programs",
    "tl.debug_barrier": "barrier",
    "tl.inline_asm_elementwise": "assembly",
    "tl.make_block_ptr": "make_block_ptr",
    "tl.make_tensor_descriptor": "make_descriptor",
    "tl._experimental_make_tensor_descriptor": "make_descriptor",
    "tl.advance": "advance",
}
