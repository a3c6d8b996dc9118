"""What kernels do with memory: a run of some blocks reads, writes and adds, and each address is looked at."""

from __future__ import annotations

from abc import ABC, abstractmethod
from dataclasses import replace
from math import prod
from typing import Any

import numpy as np
from numpy.typing import NDArray

from mugraph.triton_text import block_pointers
from mugraph.triton_text.arithmetic import Arithmetic
from mugraph.triton_text.arrivals import Arriving
from mugraph.triton_text.bits import BitArithmetic, Bits
from mugraph.triton_text.handles import BlockPointer, Nothing
from mugraph.triton_text.ints import Bools, Ints, of_blocks
from mugraph.triton_text.loads import loaded, whole_numbers
from mugraph.triton_text.memory import Memory
from mugraph.triton_text.reals import Reals
from mugraph.triton_text.refusals import Diverges, Unreadable, Wrong
from mugraph.triton_text.running import Launch
from mugraph.triton_text.source import listed
from mugraph.triton_text.tiles import CODES, FLOATS, MADE, RAW, Floats, Pointers, Tile, common, is_known, of_shape
from mugraph.triton_text.waits import PREFETCH, Waiting


class Accesses(ABC):
    """Some blocks of a launch. reals: None to look at addresses only. line: of the kernel's text, that is being run"""

    def __init__(self, launch: Launch, blocks: NDArray[np.int64], reals: Reals | None) -> None:
        self.launch, self.blocks = launch, blocks
        takes_tf32 = launch.world.takes_tf32
        self.of = BitArithmetic(reals) if isinstance(reals, Bits) else Arithmetic(reals, takes_tf32=takes_tf32)
        self._stored: set[Memory] = set()
        self.waiting = Waiting(launch.function.name, launch.start)
        self.inside: NDArray[np.intp] | None = None
        self.apart: NDArray[np.int64] | None = None
        self.arriving = Arriving(launch.function.name, launch.arrivals, blocks, surveys=reals is None)

    @property
    @abstractmethod
    def line(self) -> int: ...

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
                self.launch.mark(memory, offsets, where, self.blocks, self.line)
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
                launch.mark_added(memory, offsets, where, self.blocks, self.line)
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

    def barrier(self) -> None:
        self._check_all()
        self._stored.clear()

    def _counted(self, tile: Any) -> Any:
        if isinstance(tile, Ints | Bools | Floats | Pointers):
            size = prod(tile.shape)
            if self.of.reals is None:
                self.launch.largest = max(self.launch.largest, size)
            elif isinstance(tile, Floats):
                self.launch.world.elements += size * len(self.blocks)
        return tile

    # --- block pointers

    def advance(self, base: Any, offsets: Any) -> BlockPointer:
        return block_pointers.advanced(self.of, base, offsets)

    def _block_load(self, block: BlockPointer, boundary_check: Any = ()) -> Tile:
        pointers, mask = self._lanes(block, boundary_check)
        return self.load(pointers, mask, 0.0 if mask is not None else None)

    def _block_store(self, block: BlockPointer, value: Any, boundary_check: Any = ()) -> None:
        pointers, mask = self._lanes(block, boundary_check)
        self.store(pointers, value, mask)

    def _lanes(self, block: BlockPointer, boundary_check: Any) -> tuple[Pointers, Bools | None]:
        return block_pointers.lanes(self.of, block, boundary_check)
