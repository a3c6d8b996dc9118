"""Operators of a block graph as they are read: their axes are settled when all of them are there."""

from __future__ import annotations

from dataclasses import dataclass, replace

from mugraph.ir.mirage.axes import Axes, Dim
from mugraph.ir.ops import Kind, Op


@dataclass(frozen=True)
class Tile:
    """dims: axes of each dimension. cuts: axes of the grid and the loop along which the tile varies"""

    value: str
    dims: tuple[Dim, ...]
    cuts: frozenset[str] = frozenset()


@dataclass(frozen=True)
class _Step:
    """An operator. dims, over: as they were named when it was read"""

    op: Op
    dims: tuple[Dim, ...]
    over: Dim = ()


class Steps:
    """Builds operators, one tile from others. Raises Unlike where tiles do not fit each other."""

    def __init__(self, axes: Axes) -> None:
        self._axes = axes
        self._steps: list[_Step] = []

    def ops(self) -> tuple[Op, ...]:
        now = self._axes.now

        def settled(step: _Step) -> list[Op]:
            axes = sorted({*now(step.op.axes), *(axis for dim in step.dims for axis in now(dim))})
            op = replace(step.op, axes=tuple(axes), over=tuple(sorted(now(step.over))))
            return _one_by_one(op, now(step.over)) if op.kind is Kind.ACCUM else [op]

        return tuple(op for step in self._steps for op in settled(step))

    def load(self, tensor: str, cuts: frozenset[str], dims: tuple[Dim, ...]) -> str:
        return self._add(Op(f"{tensor}_tile", Kind.LOAD, axes=tuple(cuts), tensor=tensor), dims)

    def store(self, tensor: str, tile: Tile) -> None:
        self._add(Op(f"{tensor}_store", Kind.STORE, (tile.value,), tuple(tile.cuts), tensor=tensor), tile.dims)

    def elementwise(self, kind: Kind, one: Tile, other: Tile | None = None, fn: str = "") -> Tile:
        """Dimensions of one element are repeated along the other's."""
        if other is None:
            return self._made(kind, (one.value,), one.dims, one.cuts, fn)
        dims = self._broadcast(one.dims, other.dims)
        return self._made(kind, (one.value, other.value), dims, one.cuts | other.cuts, fn)

    def scaled(self, tile: Tile, factor: float) -> Tile:
        constant = self._add(Op(f"c{len(self._steps)}", Kind.CONST, value=factor), ())
        return self._made(Kind.MUL, (tile.value, constant), tile.dims, tile.cuts)

    def squared(self, tile: Tile) -> Tile:
        return self.elementwise(Kind.MUL, tile, tile)

    def matmul(self, one: Tile, other: Tile) -> Tile:
        """[..., m, k] and [..., k, n] -> [..., m, n]."""
        *batch, rows, depth = one.dims
        *others, inner, columns = other.dims
        self._axes.unify(depth, inner)
        dims = (*self._broadcast(tuple(batch), tuple(others)), rows, columns)
        cuts = one.cuts | other.cuts
        if not self._axes.now(depth):  # nothing to sum: a product of a column and a row
            return self._made(Kind.MUL, (one.value, other.value), dims, cuts)
        return self._made(Kind.DOT, (one.value, other.value), dims, cuts, over=depth)

    def summed(self, tile: Tile, number: int, to: int) -> Tile:
        """A dimension of the tile summed to `to` elements: those that many places apart from each other are added."""
        outer, inner = self._axes.cut(tile.dims[number], to)
        dims = (*tile.dims[:number], inner, *tile.dims[number + 1 :])
        if not outer:
            return replace(tile, dims=dims)
        return self._made(Kind.SUM, (tile.value,), dims, tile.cuts, over=outer)

    def accumulated(self, tile: Tile, loop: Dim) -> Tile:
        """The sum over the loop's iterations; loop: () for one iteration."""
        if not loop:
            return tile
        (axis,) = loop
        if axis not in tile.cuts:  # each iteration adds the same
            return self.scaled(tile, float(self._axes.size(loop)))
        left = tile.cuts - {axis}
        one = self._made(Kind.SUM, (tile.value,), tile.dims, left, over=loop)
        return self._made(Kind.ACCUM, (one.value,), tile.dims, left, over=loop)

    def _broadcast(self, one: tuple[Dim, ...], other: tuple[Dim, ...]) -> tuple[Dim, ...]:
        longest = max(len(one), len(other))
        padded = [((),) * (longest - len(dims)) + dims for dims in (one, other)]
        for left, right in zip(*padded, strict=True):
            if left and right:
                self._axes.unify(left, right)
        return tuple(left or right for left, right in zip(*padded, strict=True))

    def _made(
        self,
        kind: Kind,
        inputs: tuple[str, ...],
        dims: tuple[Dim, ...],
        cuts: frozenset[str],
        fn: str = "",
        over: Dim = (),
    ) -> Tile:
        name = f"{fn or kind.name.lower()}{len(self._steps)}"
        op = Op(name, kind, inputs, tuple(cuts), fn=fn)
        return Tile(self._add(op, dims, over), dims, cuts)

    def _add(self, op: Op, dims: tuple[Dim, ...], over: Dim = ()) -> str:
        self._steps.append(_Step(op, dims, over))
        return op.name


def _one_by_one(accumulator: Op, loops: Dim) -> list[Op]:
    """Closes loops one after the other, the innermost first."""
    made: list[Op] = []
    for axis in reversed(loops):
        last = axis == loops[0]
        name = accumulator.name if last else f"{accumulator.name}_{axis}"
        inputs = (made[-1].name,) if made else accumulator.inputs
        made.append(replace(accumulator, name=name, inputs=inputs, over=(axis,)))
    return made
