"""The survey of a launch in one go: of all its blocks, by the digits of their numbers.

What kernels make of a block's number is its quotients and remainders: a number with a digit for each axis of a tensor.
With a dimension of their own for each digit, addresses of millions of blocks are a few short arrays (ints.py), and who
writes what is known without a list (lattice.py). What does not have this form is surveyed block by block (running.py),
and so is whatever seems wrong: this survey passes a launch, and never refuses one.
"""

from __future__ import annotations

from collections.abc import Sequence
from math import prod
from typing import Any

import numpy as np
from numpy.typing import NDArray

from mugraph.triton_text.arithmetic import Arithmetic
from mugraph.triton_text.handles import BlockPointer, Nothing
from mugraph.triton_text.ints import REACH, Bools, Ints, Shape
from mugraph.triton_text.kernels import Run
from mugraph.triton_text.lattice import MOST, Lattice, NotLaidOut, addresses, are_places, lattice, together
from mugraph.triton_text.memory import Memory
from mugraph.triton_text.refusals import Diverges, Refused
from mugraph.triton_text.running import Launch
from mugraph.triton_text.tiles import FLOATS, Floats, Pointers, Tile, common, ends, of_shape

_SPLITS = 16
"""Times that a digit is found to be two."""


class _Split(Exception):
    """A digit is two: of `low` numbers, and of the rest."""

    def __init__(self, dim: int, low: int) -> None:
        super().__init__()
        self.dim, self.low = dim, low


def surveyed_in_one(launch: Launch) -> bool:
    """Whether all of its blocks were looked at, and nothing is wrong with any. If not, nothing was changed."""
    x, y, _ = launch.grid
    steps = (1, x, x * y)
    digits = [_Digit(axis, 1, steps[axis], size) for axis, size in enumerate(launch.grid) if size > 1]
    for _ in range(_SPLITS):
        run = _Boxed(launch, digits)
        try:
            run.execute()
            written = run.written()
        except _Split as split:
            digits = _split(digits, split)
            continue
        except (NotLaidOut, Diverges, Refused):
            return False
        for memory, (found, line) in written.items():
            launch.written.add(memory)
            memory.layer(launch.number, line).owners.lay_out(found)
        launch.also_read |= run.read
        launch.largest = max(launch.largest, run.largest)
        return True
    return False


class _Digit:
    """Of a block's number along an axis of the grid. unit: what one more of it adds there. step: to the number of the
    block among all"""

    def __init__(self, axis: int, unit: int, step: int, size: int) -> None:
        self.axis, self.unit, self.step, self.size = axis, unit, step, size


def _split(digits: Sequence[_Digit], split: _Split) -> list[_Digit]:
    found: list[_Digit] = []
    for dim, one in enumerate(digits):
        if dim == split.dim:
            high = _Digit(one.axis, one.unit * split.low, one.step * split.low, one.size // split.low)
            found += [high, _Digit(one.axis, one.unit, one.step, split.low)]
        else:
            found.append(one)
    return found


class _Boxes(Arithmetic):
    """Of numbers with a dimension for each digit."""

    def __init__(self, digits: Sequence[_Digit]) -> None:
        super().__init__(None)
        self._digits = digits

    def whole(self, value: Ints | Bools) -> NDArray[Any]:
        if prod(np.broadcast_shapes(*(part.shape for part in value.parts))) > MOST:
            raise NotLaidOut
        return super().whole(value)

    def of_ints(self, op: str, a: Ints, b: Ints, shape: Shape) -> Ints:
        found = super().of_ints(op, a, b, shape)
        if any(part.size > MOST for part in found.parts):
            raise NotLaidOut
        return found

    def _parts(self, op: str, a: Ints, b: Ints) -> tuple[NDArray[np.int64], ...]:
        """A quotient and a remainder part by part: of what is a multiple in any case, and of the rest."""
        (low, high), (least, most) = ends(a), ends(b)
        if op in ("min", "max") and (high <= least or most <= low):
            return (a if (high <= least) == (op == "min") else b).parts
        if op not in ("//", "%") or least != most or least < 1 or low < 0:
            return super()._parts(op, a, b)
        rest = [part for part in a.parts if (part % least).any()]
        self._check_digits(rest, len(a.shape), least)
        left = self.whole(Ints(a.shape, tuple(rest))) if rest else np.zeros((1,) * (len(a.shape) + 1), np.int64)
        if op == "%":
            return (_slim(left % least),)
        return (*(part // least for part in a.parts if not (part % least).any()), _slim(left // least))

    def _check_digits(self, parts: Sequence[NDArray[np.int64]], rank: int, divisor: int) -> None:
        """Raises _Split for a digit whose higher part is a multiple of the divisor."""
        for part in parts:
            dims = [at for at, size in enumerate(part.shape) if size > 1]
            if len(dims) != 1 or part.ndim - rank != len(self._digits) or dims[0] >= len(self._digits):
                continue
            values, digit = part.reshape(-1), self._digits[dims[0]]
            step = int(values[1] - values[0])
            low = divisor // step if step > 0 and divisor % step == 0 else 1
            if 1 < low < digit.size and digit.size % low == 0 and (np.diff(values) == step).all():
                raise _Split(dims[0], low)


def _slim(array: NDArray[np.int64]) -> NDArray[np.int64]:
    """Of size 1 where it does not vary: a remainder is taken of all digits, and depends on the last ones."""
    for dim, size in enumerate(array.shape):
        first = array.take([0], dim)
        array = first if size > 1 and (array == first).all() else array
    return array


class _Boxed(Run):
    """All blocks of a launch, for their addresses."""

    def __init__(self, launch: Launch, digits: Sequence[_Digit]) -> None:
        super().__init__(launch, np.zeros(1, np.int64), None)
        self.of = _Boxes(digits)
        self._digits = digits
        self.read: set[Memory] = set()
        self.largest = 1
        self._writes: dict[Memory, list[Lattice]] = {}
        self._lines: dict[Memory, int] = {}

    def written(self) -> dict[Memory, tuple[Lattice, int]]:
        """And the line of the first statement that writes. Raises NotLaidOut."""
        if self.read & self._lines.keys() or self._lines.keys() != self._writes.keys():
            raise NotLaidOut
        return {memory: (together(found), self._lines[memory]) for memory, found in self._writes.items()}

    def _counted(self, tile: Any) -> Any:
        if isinstance(tile, Ints | Bools | Floats | Pointers):
            self.largest = max(self.largest, prod(tile.shape))
        return tile

    def _one(self, found: NDArray[np.int64]) -> int:
        if (found != found.reshape(-1)[0]).any():
            raise NotLaidOut
        return int(found.reshape(-1)[0])

    def program_id(self, axis: Any, **_: Any) -> Ints:
        count = len(self._digits)
        parts: list[NDArray[np.int64]] = []
        for dim, digit in enumerate(self._digits):
            if digit.axis == int(axis):
                along = np.arange(digit.size, dtype=np.int64) * digit.unit
                parts.append(along.reshape(*(-1 if at == dim else 1 for at in range(count))))
        return Ints((), tuple(parts) or (np.zeros((1,) * max(1, count), np.int64),))

    def load(self, pointer: Any, mask: Any = None, *_: Any, **__: Any) -> Tile:
        if not isinstance(pointer, Pointers):
            raise NotLaidOut
        offsets, where = self._access(pointer, mask)
        memory = pointer.memory
        self.check_read(memory)
        if memory.data is not None or memory.kind not in FLOATS:
            raise NotLaidOut
        if memory not in self.read and not memory.is_written(self.launch.number):
            raise NotLaidOut
        self._check(memory, offsets, where)
        self.read.add(memory)
        return Floats(offsets.shape, memory.kind, None)

    def store(self, pointer: Any, value: Any, mask: Any = None, *_: Any, **__: Any) -> None:
        if not isinstance(pointer, Pointers) or pointer.memory.kind not in FLOATS:
            raise NotLaidOut
        moved = of_shape(pointer, common(pointer.shape, self.of.tile(value).shape))
        assert isinstance(moved, Pointers)
        offsets, where = self._access(moved, mask)
        memory = pointer.memory
        self.waiting.check_write(memory.name)
        self._check(memory, offsets, where)
        found = lattice(offsets, where, [(digit.step, digit.size) for digit in self._digits])
        self._lines.setdefault(memory, self.evaluator.line)
        if found is not None:
            self._writes.setdefault(memory, []).append(found)

    def _check(self, memory: Memory, offsets: Ints, where: Bools | None) -> None:
        """Is each address one of the tensor's?"""
        self.largest = max(self.largest, prod(offsets.shape))
        most = min(memory.size, REACH) if offsets.kind == "int32" else memory.size
        low, high = ends(offsets)
        if low >= 0 and high < most and memory.is_dense:
            return
        found = addresses(offsets, where, len(self._digits))
        if found is None:
            return
        least, groups = found
        if least < 0 or least + sum(int(one.max()) for one in groups) >= most:
            raise NotLaidOut
        if not memory.is_dense and not are_places(least, groups, memory.shape, memory.strides):
            raise NotLaidOut

    def check_asked(self, memory: Memory, offsets: Ints, where: Bools | None) -> None:
        self._check(memory, offsets, where)

    def atomic_add(self, *_: Any, **__: Any) -> Nothing:
        raise NotLaidOut

    def _lanes(self, block: BlockPointer, boundary_check: Any) -> Any:
        raise NotLaidOut
