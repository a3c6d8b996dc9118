"""The operators that may be applied to one value or to two, with the abstract expressions of what they make.

Types decide here, and expressions: of two operands, only what can lead to the output is built. What is evaluated, kept
or too large, the saturation decides.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Iterator
from typing import NamedTuple

from mugraph.ir.ops import LARGEST, Kind
from mugraph.search.algebra.abstract import NF
from mugraph.search.topologies.frame import Frame, Value
from mugraph.search.topologies.sites import Sites

Pair = tuple[NF, NF, NF, NF, NF]
"""Abstract expressions of x + y, x * y, x / y, y / x and max(x, y); 0 for those that cannot lead to the goal."""


class Applied(NamedTuple):
    """An operator on values. mask, after, nf: of what it makes; slots, over, fn: as in Value and Edge. swapped: its
    operands are taken the other way round"""

    kind: Kind
    mask: int
    after: int
    nf: NF
    slots: tuple[int, ...] = ()
    over: tuple[str, ...] = ()
    fn: str = ""
    swapped: bool = False


class Applying:
    """For one frame and goal. pruned: is told of pairs whose types do not fit."""

    def __init__(self, frame: Frame, sites: Sites, goal: NF, pruned: Counter[str]) -> None:
        program = frame.program
        self._frame, self._algebra, self._sites, self._goal = frame, frame.algebra, sites, goal
        self._pruned = pruned
        self._fns = sorted({op.fn for op in program.ops if op.kind is Kind.UNARY} | frame.algebra.by_form)
        self._has = {op.kind for op in program.ops}
        # An outer product makes a tile larger than both operands: only where the program has a value of those axes.
        self._axis_sets = {value.mask & frame.tile_bits for value in frame.values.values()}
        # Matrix-vector products are MUL and SUM, unless the program writes them as products.
        self._thin_dots = any(_is_thin(*(frame.mask(program.op(i).axes) for i in op.inputs))
                              for op in program.ops if op.kind is Kind.DOT)  # fmt: skip

    def leads_on(self, nf: NF) -> bool:
        """Is it part of the output's abstract expression?"""
        return self._algebra.sub(nf, self._goal)

    def may_dot(self) -> bool:
        """May a DOT arise from this program's axes? Not where the axes of any two values lie one in the other."""
        frame = self._frame
        loads = [frame.values[op.name].mask & frame.tile_bits for op in frame.program.ops if op.kind is Kind.LOAD]
        if self._thin_dots or len(frame.reductions) > 1:
            return True
        return any(not _is_thin(a, b) for a in loads for b in loads)

    def to_one(self, value: Value) -> Iterator[Applied]:
        algebra, mask, after = self._algebra, value.mask, value.after
        if Kind.SQRT in self._has:
            yield Applied(Kind.SQRT, mask, after, algebra.sqrt(value.nf))
        if Kind.EXP in self._has:
            yield Applied(Kind.EXP, mask, after, algebra.exp(value.nf))
        for fn in self._fns:
            yield Applied(Kind.UNARY, mask, after, algebra.unary(fn, value.nf), fn=fn)
        if Kind.AMAX in self._has:
            yield from self._reduced(value, Kind.AMAX, algebra.amax, LARGEST)
        yield from self._reduced(value, Kind.SUM, algebra.sum)

    def _reduced(
        self, value: Value, kind: Kind, reduced: Callable[[int, NF], NF], accumulated: str = ""
    ) -> Iterator[Applied]:
        """Along a tile, and over a loop. reduced: its abstract expression; accumulated: `fn` of the accumulator."""
        frame, mask, after = self._frame, value.mask, value.after
        for reduction in frame.reductions:
            if mask & reduction.mask == reduction.mask:
                nf = reduced(reduction.prime, value.nf)
                yield Applied(kind, mask & ~reduction.mask, after, nf, reduction.slots, reduction.axes)
        for axis, slot in frame.loop_slot.items():
            if mask >> slot & 1:
                nf = reduced(frame.primes[slot], value.nf)
                yield Applied(Kind.ACCUM, mask & ~(1 << slot), after | 1 << slot, nf, (slot,), (axis,), accumulated)

    def pair(self, x: NF, y: NF) -> Pair:
        """Of two expressions (the maximum of one and itself is nothing new)."""
        a, b, algebra = self._sites.marks(x), self._sites.marks(y), self._algebra
        return (
            self._kept(algebra.add(x, y)) if a.cofactors & b.cofactors else 0,
            self._kept(algebra.mul(x, y)) if a.factor & b.factor else 0,
            self._kept(algebra.div(x, y)) if a.factor & b.divisor else 0,
            self._kept(algebra.div(y, x)) if b.factor & a.divisor else 0,
            self._kept(algebra.maximum(x, y)) if a.part & b.part and Kind.MAX in self._has and x != y else 0,
        )

    def results(self, nfs: Pair, a: Value) -> Iterator[NF]:
        """Those of a pair, and of products that reduce at once. a: the first value"""
        yield from nfs
        if nfs[1]:
            for reduction in self._frame.reductions:
                if a.mask & reduction.mask == reduction.mask:
                    nf = self._algebra.sum(reduction.prime, nfs[1])
                    if self.leads_on(nf):
                        yield nf

    def to_two(self, a: Value, b: Value, nfs: Pair) -> Iterator[Applied]:
        """nfs: the pair of their expressions"""
        frame = self._frame
        mask, after = a.mask | b.mask, a.after | b.after
        if mask & after & frame.loop_bits:  # a loop's result is not known inside of it
            self._pruned["type"] += 1
            return
        total, product, quotient, reverse, larger = nfs
        if Kind.MASK in (a.kind, b.kind):
            yield from self._masked(a, b, product)
            return
        tile, tile_a, tile_b = (m & frame.tile_bits for m in (mask, a.mask, b.mask))
        dots = bool(product) and (self._thin_dots or not _is_thin(tile_a, tile_b))
        if tile in (tile_a, tile_b) or tile in self._axis_sets:
            if total:
                yield Applied(Kind.ADD, mask, after, total)
            if larger:
                yield Applied(Kind.MAX, mask, after, larger)
            if product:
                yield Applied(Kind.MUL, mask, after, product)
            if quotient:
                yield Applied(Kind.DIV, mask, after, quotient)
            if reverse and a is not b:
                yield Applied(Kind.DIV, mask, after, reverse, swapped=True)
        elif not dots:
            self._pruned["type"] += 1
        if dots:
            yield from self._dots(a.mask & b.mask, mask, after, product)

    def _masked(self, a: Value, b: Value, nf: NF) -> Iterator[Applied]:
        """A mask as a factor: of a value with all of its axes and, where that has an exponential in it, of the
        exponential itself. Only there is it minus infinity before the exponential, which the maximum must know."""
        value, mask = (b, a) if a.kind is Kind.MASK else (a, b)
        if not nf or mask.mask & ~value.mask or (value.has_exp and value.kind is not Kind.EXP):
            self._pruned["type"] += 1
            return
        yield Applied(Kind.MUL, value.mask, value.after, nf)

    def _dots(self, shared: int, mask: int, after: int, product: NF) -> Iterator[Applied]:
        for reduction in self._frame.reductions:
            if shared & reduction.mask == reduction.mask:
                nf = self._algebra.sum(reduction.prime, product)
                yield Applied(Kind.DOT, mask & ~reduction.mask, after, nf, reduction.slots, reduction.axes)

    def _kept(self, nf: NF) -> NF:
        return nf if self.leads_on(nf) else 0


def _is_thin(a: int, b: int) -> bool:
    """Has one operand no axis of its own: no matrix product?"""
    return not a & ~b or not b & ~a
