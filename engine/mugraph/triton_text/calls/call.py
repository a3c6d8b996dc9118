"""A call of PyTorch's in a launcher that computes, as a step of it, and what is said of each to read it."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from mugraph.triton_text.owners import Runs
from mugraph.triton_text.reals import Real, Reals
from mugraph.triton_text.refusals import Unreadable, Wrong
from mugraph.triton_text.running import World
from mugraph.triton_text.tensors import HostTensor
from mugraph.triton_text.tiles import FLOATS

Box = tuple[slice, ...]
Compute = Callable[["Call", Box], Real]


@dataclass(eq=False)
class Call:
    """A call as a step of a launcher. Blocks of its result are whole rows of its dimensions but the last.

    planes: several neighbours of the dimension before the rows are computed at once
    copies: each element is what its only operand, of the same shape, has in its place
    """

    world: World
    number: int
    function: str
    operands: tuple[HostTensor, ...]
    arguments: Mapping[str, Any]
    out: HostTensor
    line: int
    compute: Compute
    planes: bool = False
    copies: bool = False

    @property
    def reals(self) -> Reals:
        return self.world.reals

    def survey(self) -> None:
        """Say that it writes all of its result, a row being a block."""
        layer = self.out.memory.layer(self.number, self.line)
        layer.owners.add(self._rows())
        for operand in self.operands:
            if not operand.memory.is_written(self.number):
                raise Wrong("unwritten", f"{self.function} reads {operand.memory.name}, not all of which was written")

    def _rows(self) -> Runs:
        """A row of neighbours is one run, whose other elements are not listed: results may have billions."""
        *outer, along = [slice(0, n) for n in self.out.shape]
        length = self.out.shape[-1]
        if self.out.strides[-1] == 1 or length == 1:
            starts = self.out.places([*outer, slice(0, 1)]).reshape(-1)
            return Runs(starts, starts + length, np.arange(starts.size))
        places = self.out.places([*outer, along]).reshape(-1)
        return Runs(places, places + 1, np.arange(places.size) // length)

    def run(self, blocks: NDArray[np.int64]) -> None:
        layer = self.out.memory.of_step(self.number)
        assert layer is not None
        if self.copies:  # of channels that are put last, a row is a place of an image: of few elements, there are many
            found = self.world.read(self.operands[0].memory, _row_places(self.operands[0], blocks), self.number)
            self.world.elements += found.p.size
            layer.put(_row_places(self.out, blocks), found)
            return
        boxes = _boxes(self.out.shape, blocks)
        for box in _planes(boxes) if self.planes and len(self.out.shape) > 2 else boxes:
            places = self.out.places(box)
            value = self.compute(self, box)
            layer.put(places.reshape(-1), value.each(lambda x: x.reshape(-1)))

    def part(self, operand: HostTensor, box: Sequence[slice]) -> Real:
        """A part of an operand."""
        memory, run = operand.memory, operand.run_dim(box)
        if memory.source is None or memory.layers or run is None:
            places = operand.places(box)
            self.world.elements += places.size
            found = self.world.read(memory, places.reshape(-1), self.number)
            return found.each(lambda array: array.reshape(places.shape))
        starts = operand.places([slice(b.start, b.start + 1) if d == run else b for d, b in enumerate(box)])
        p, q = self.world.inputs.block(starts.squeeze(run) + memory.source, box[run].stop - box[run].start)
        self.world.elements += p.size
        return Real(p, q).each(lambda array: np.moveaxis(array, -1, run))


def _row_places(tensor: HostTensor, rows: NDArray[np.int64]) -> NDArray[np.int64]:
    """Where the elements of some of its rows lie, row after row."""
    *outer, size = tensor.shape
    *steps, along = tensor.strides
    index = np.unravel_index(rows, outer) if outer else ()
    starts = np.full(rows.shape, tensor.offset, np.int64)
    for at, step in zip(index, steps, strict=True):
        starts += at * step
    return (starts[:, None] + np.arange(size, dtype=np.int64) * along).reshape(-1)


def _boxes(shape: Sequence[int], rows: NDArray[np.int64]) -> list[Box]:
    """Of a result's rows: neighbours in the last dimension but one are together."""
    if len(shape) < 2:
        return [tuple(slice(0, n) for n in shape)]
    found: list[Box] = []
    height = shape[-2]
    for outer in np.unique(rows // height):
        inner = rows[rows // height == outer] % height
        index = np.unravel_index(int(outer), shape[:-2]) if shape[:-2] else ()
        for run in np.split(inner, np.flatnonzero(np.diff(inner) != 1) + 1):
            first, last = int(run[0]), int(run[-1]) + 1
            found.append((*(slice(int(i), int(i) + 1) for i in index), slice(first, last), slice(0, shape[-1])))
    return found


def _planes(boxes: Sequence[Box]) -> list[Box]:
    """Boxes of the same rows in planes that are neighbours, together."""
    found: dict[tuple[int, ...], Box] = {}
    for box in boxes:
        *outer, plane, rows, _ = box
        key = (*(part.start for part in outer), plane.start, rows.start, rows.stop)
        before = found.pop(key, None)
        plane = plane if before is None else slice(before[-3].start, plane.stop)
        found[*key[:-3], plane.stop, *key[-2:]] = (*outer, plane, *box[-2:])
    return list(found.values())


def part_of(operand: HostTensor, outer: Sequence[slice]) -> tuple[slice, ...]:
    """The part of an operand's leading dimensions; those of one element are broadcast."""
    own = operand.shape[:-2]
    used = outer[len(outer) - len(own) :]
    return tuple(slice(0, 1) if n == 1 else part for n, part in zip(own, used, strict=True))


def matrices(a: Real, b: Real) -> tuple[Real, Real]:
    rank = max(a.p.ndim, b.p.ndim) + 1

    def padded(value: Real) -> Real:
        return value.each(lambda x: x.reshape((1,) * (rank - x.ndim) + x.shape))

    return padded(a), padded(b)


def of_one_kind(operands: Sequence[HostTensor], arguments: Mapping[str, Any]) -> str:
    """Of calls whose operands have one type, which the result has too."""
    kinds = list(dict.fromkeys(one.memory.kind for one in operands))
    if not all(kind in FLOATS for kind in kinds):
        raise Unreadable("a call of tensors that hold no numbers of a floating-point type is not read")
    if len(kinds) > 1:
        raise Wrong("type", f"a call with tensors of several types: {', '.join(kinds)}")
    return kinds[0]


@dataclass(frozen=True)
class Reading:
    """
    parameters: of the call, in order; the first `tensors` are operands, or those that `operands` names
    shape:      of the result, from the operands and the other arguments
    compute:    a part of the result
    kind:       the type of the result's elements; raises Unreadable or Wrong where the operands' types do not fit
    planes, copies: as of Call
    """

    parameters: tuple[str, ...]
    tensors: int
    shape: Callable[[Sequence[HostTensor], Mapping[str, Any]], tuple[int, ...]]
    compute: Compute
    planes: bool = False
    copies: bool = False
    kind: Callable[[Sequence[HostTensor], Mapping[str, Any]], str] = of_one_kind
    operands: tuple[str, ...] = ()
