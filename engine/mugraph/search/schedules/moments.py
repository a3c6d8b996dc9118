"""Mean and variance in one pass over memory: a topology that holds a whole row, cut into parts of the row.

sum((x - mean)^2) needs the mean first. A thread block that has a part of the row knows the part's own mean, and finds
the sum S of the part and its squares M2 about that mean. The first kernel stores both, so the row is read once; the
second kernel joins them (Chan, Golub and LeVeque, "Updating formulae and a pairwise algorithm for computing sample
variances", 1979, eq. 2.1, for any number of parts of n elements each):

    S = sum(S_p),    M2 = sum(M2_p + n * (mean_p - mean)^2)

Each term is a square, so nothing cancels, as it does in sum(x^2) - S^2 / N. And as only sums are handed over, the
second kernel need not hold a row: what the topology computes of each element, it computes in tiles of any size.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass, replace
from math import isclose, prod

from mugraph.ir.block import BlockGraph
from mugraph.ir.names import numbered, take
from mugraph.ir.ops import Kind, Op
from mugraph.kinds import kind_named
from mugraph.search.schedules.cutting import above, in_parts, in_parts_of, kernel, order_in_memory, unfinished
from mugraph.search.schedules.splits import COMBINE

MOST_COUNTS = 12
"""Numbers of parts that are looked at."""
_LEAST, _MOST = 16, 1 << 15
"""Elements of the axis in a part, at least, and of a part of a row, at most."""
_NEAR = 1e-9
"""What a constant may differ by from the one it is taken for."""


@dataclass(frozen=True)
class _Spread:
    """A sum of squares about a mean.

    squares:    the sum, over all axes of the mean
    square:     what it adds up
    deviation:  x - mean
    minus_mean: the mean's negative, as the topology has it: `factor`, which is -1 / N, times `total`, the sum of x
    """

    squares: Op
    square: Op
    deviation: Op
    minus_mean: str
    factor: float
    total: Op


@dataclass(frozen=True)
class MomentsCut:
    """Where a topology without loops can be cut in two, for any number of parts of one axis that it reduces.

    split, part: the axes it becomes
    sums:    reductions over the axis of what none of them is part of
    spreads: by name, sums of squares about the mean of one of those
    inner:   what both are computed from, without the means
    """

    block: BlockGraph
    axis: str
    split: str
    part: str
    sums: tuple[Op, ...]
    spreads: Mapping[str, _Spread]
    inner: tuple[Op, ...]

    def pairs(self, count: int) -> list[tuple[BlockGraph, BlockGraph]]:
        """Both kernels for `count` parts, which divide the axis. A thread block of the first holds all of a part."""
        size = self.block.sizes[self.axis]
        if count < 1 or size % count:
            raise ValueError(f"{count} parts do not divide axis {self.axis} of size {size}")
        sizes = {**self.block.sizes, self.split: count, self.part: size // count}
        taken = {*(tensor.name for tensor in self.block.tensors), *(op.name for op in self.block.ops)}
        closed = (*self.sums, *(spread.squares for spread in self.spreads.values()))
        names = {op.name: take(numbered(f"{op.name}_parts"), taken) for op in closed}
        handed = {
            # The parts of a row lie side by side: every block of the second kernel reads all of them.
            names[op.name]: unfinished(names[op.name], (*order_in_memory(op.axes, self.block), self.split), sizes)
            for op in closed
        }
        own = {tensor.name: tensor for tensor in self.block.tensors}
        known = {name: in_parts(tensor, self.axis, self.split, self.part) for name, tensor in own.items()}
        first = tuple(self._first(count, names, set(taken)))
        second = tuple(self._second(count, names, set(taken)))
        return [
            (
                kernel(self.block.name, sizes, {**known, **handed}, first, ()),
                kernel(f"{self.block.name}_{COMBINE}", sizes, {**handed, **own}, second, ()),
            )
        ]

    def counts(self, most: int) -> list[int]:
        """Numbers of parts worth a look, at most so many: none whose parts a thread block cannot hold."""
        size = self.block.sizes[self.axis]
        row = max(prod(self.block.sizes[axis] for axis in op.over) for op in self.sums)
        least = max(2, row // _MOST)
        every = [count for count in range(least, min(most, size // _LEAST) + 1) if size % count == 0]
        step = max(1, -(-len(every) // MOST_COUNTS))
        return every[::-1][::step][::-1]

    def _first(self, count: int, names: Mapping[str, str], taken: set[str]) -> Iterator[Op]:
        """Sums of a part, and squares about its own mean."""
        means = {spread.deviation.name: spread for spread in self.spreads.values()}
        varies = set[str]()
        for op in self.inner:
            if self.axis in op.axes or not varies.isdisjoint(op.inputs):
                varies.add(op.name)
            ready = in_parts_of(op, self.axis, self.split, self.part, varies=op.name in varies)
            spread = means.get(op.name)
            if spread is not None:
                factor, mean = self._means(spread.total.name, spread.factor * count, spread, taken)
                yield from (factor, mean)
                inputs = tuple(mean.name if name == spread.minus_mean else name for name in op.inputs)
                ready = replace(ready, inputs=inputs)
            yield ready
            if op.name in names:
                tensor = names[op.name]
                store = take(numbered(f"store_{tensor}"), taken)
                yield Op(store, Kind.STORE, (op.name,), ready.axes, tensor=tensor)

    def _second(self, count: int, names: Mapping[str, str], taken: set[str]) -> Iterator[Op]:
        """Sums and squares joined, and what the topology computes of them."""
        stores = {op.name for op in self.block.ops if op.kind is Kind.STORE}
        after = above(self.block, stores, stop={*names})
        means = {self.spreads[op.name].minus_mean for op in after if op.name in self.spreads}
        kept = {op.name for op in (*after, *above(self.block, means, stop={*names}))}
        for op in self.block.ops:
            if op.name not in kept:
                continue
            if op.name not in names:
                yield op
                continue
            load = names[op.name]
            yield Op(load, Kind.LOAD, (), tuple(sorted((*op.axes, self.split))), tensor=load)
            joined = load
            if op.name in self.spreads:
                terms = list(self._joined(self.spreads[op.name], names, count, taken))
                yield from terms
                joined = terms[-1].name
            assert op.kind.accumulator is not None
            kind = kind_named(op.kind.accumulator.kind)
            yield Op(op.name, kind, (joined,), op.axes, (self.split,), f32=op.f32)

    def _joined(self, spread: _Spread, names: Mapping[str, str], count: int, taken: set[str]) -> Iterator[Op]:
        """M2_p + n * (mean_p - mean)^2 of each part."""
        times, plus = spread.square.kind, spread.deviation.kind
        axes, f32 = tuple(sorted((*spread.squares.axes, self.split))), spread.squares.f32
        elements = prod(self.block.sizes[axis] for axis in spread.squares.over) // count

        def named(role: str) -> str:
            return take(numbered(f"{spread.squares.name}_{role}"), taken)

        factor, mean = self._means(names[spread.total.name], -spread.factor * count, spread, taken)
        between = Op(named("between"), plus, (mean.name, spread.minus_mean), axes, f32=f32)
        square = Op(named("square"), times, (between.name, between.name), axes, f32=f32)
        weight = Op(named("elements"), Kind.CONST, value=float(elements))
        weighted = Op(named("weighted"), times, (weight.name, square.name), axes, f32=f32)
        whole = Op(named("joined"), plus, (names[spread.squares.name], weighted.name), axes, f32=f32)
        yield from (factor, mean, between, square, weight, weighted, whole)

    def _means(self, total: str, factor: float, spread: _Spread, taken: set[str]) -> tuple[Op, Op]:
        """Each part's mean, or its negative: a factor, and the product with the part's sum, which is called `total`."""
        factors = Op(take(numbered(f"{total}_share"), taken), Kind.CONST, value=factor)
        axes = tuple(sorted((*spread.total.axes, self.split)))
        name = take(numbered(f"{total}_mean"), taken)
        return factors, Op(name, spread.square.kind, (factors.name, total), axes, f32=spread.total.f32)


def moments_cuts(block: BlockGraph) -> list[MomentsCut]:
    """One for each axis of a variance, if sums over that axis, and squares about their means, are all that the topology
    reduces it to."""
    if block.loops or any(op.kind.contracts or op.kind.scans for op in block.ops):
        return []
    ops = {op.name: op for op in block.ops}
    spreads = [spread for op in block.ops if (spread := _spread(op, ops, block)) is not None]
    axes = dict.fromkeys(axis for spread in spreads for axis in spread.squares.over)
    return [cut for axis in axes if (cut := _cut(block, axis, spreads)) is not None]


def _cut(block: BlockGraph, axis: str, every: list[_Spread]) -> MomentsCut | None:
    if any(axis in tensor.windowed for tensor in block.tensors):  # its parts would not be a dimension's places
        return None
    split, part = f"{axis}_split", f"{axis}_part"
    if {split, part} & block.sizes.keys():  # it was split before
        return None
    spreads = {spread.squares.name: spread for spread in every if axis in spread.squares.over}
    closed = {op.name for op in block.ops if op.kind.reduces and axis in op.over}
    sums = tuple(op for op in block.ops if op.name in closed and op.name not in spreads)
    if any(spread.total not in sums for spread in spreads.values()):
        return None
    means = {spread.minus_mean for spread in spreads.values()}
    deviations = {spread.deviation.name for spread in spreads.values()}
    inner = tuple(op for op in above(block, closed, stop=means) if op.name not in means)
    # Sums of a part stand for no sum of the whole, but in its mean.
    if any(
        closed.intersection(op.inputs) or (means.intersection(op.inputs) and op.name not in deviations) for op in inner
    ):
        return None
    return MomentsCut(block, axis, split, part, sums, spreads, inner)


def _spread(squares: Op, ops: Mapping[str, Op], block: BlockGraph) -> _Spread | None:
    """The operator as a sum of squares about a mean, if it is one."""
    if not squares.kind.is_plain_sum:
        return None
    square = ops[squares.inputs[0]]
    if not square.kind.of_itself or len(set(square.inputs)) > 1:
        return None
    deviation = ops[square.inputs[0]]
    if not (deviation.kind.shifted_by and deviation.kind.commutes):
        return None
    elements = prod(block.sizes[axis] for axis in squares.over)
    for x, mean in (deviation.inputs, deviation.inputs[::-1]):
        factor, total = _scaled(mean, ops)
        is_sum = total.kind.is_plain_sum and total.over == squares.over and total.inputs == (x,)
        if is_sum and isclose(factor, -1.0 / elements, rel_tol=_NEAR):
            return _Spread(squares, square, deviation, mean, factor, total)
    return None


def _scaled(name: str, ops: Mapping[str, Op]) -> tuple[float, Op]:
    """A value as a constant times another one."""
    factor, op = 1.0, ops[name]
    while op.kind.commutes and op.kind.scaled_by:
        one, other = (ops[operand] for operand in op.inputs)
        constant, rest = (one, other) if one.kind is Kind.CONST else (other, one)
        if constant.kind is not Kind.CONST:
            break
        factor, op = factor * constant.value, rest
    return factor, op
