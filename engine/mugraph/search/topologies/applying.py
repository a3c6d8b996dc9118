"""The operators that may be applied to one value or to two, with the abstract expressions of what they make.

Axes and abstract expressions decide: of two operands, only what can lead to the output is built. The saturation decides
what is evaluated, what is kept, and what is too large.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Iterator
from functools import partial
from typing import NamedTuple

from mugraph.ir.ops import Kind
from mugraph.search.algebra.abstract import NF
from mugraph.search.algebra.expressions import Expressions
from mugraph.search.topologies.frame import Frame, Value
from mugraph.search.topologies.sites import ANYWHERE, MARKS, Sites

Pair = tuple[NF, ...]
"""Abstract expressions of x and y by each operator of two operands; 0 for those that cannot lead to the goal."""


class Application(NamedTuple):
    """An operator on one value or two.

    mask, after, nf: of the result
    slots, over, fn: as in Value and Edge
    swapped:         its operands change places
    """

    kind: Kind
    mask: int
    after: int
    nf: NF
    slots: tuple[int, ...] = ()
    over: tuple[str, ...] = ()
    fn: str = ""
    swapped: bool = False


class _Way(NamedTuple):
    """One way to apply an element-wise kind to a pair.

    first, second: positions in Marks of what the two must have in common
    make:          the abstract expression of the result
    swapped:       its operands change places
    distinct:      it gives nothing new for a value and itself
    """

    first: int
    second: int
    make: Callable[[NF, NF], NF]
    swapped: bool
    distinct: bool
    kind: Kind


class Applying:
    """For one frame and goal. pruned: is told of pairs whose types do not fit.

    any_pair: there is a kind for which marks do not say which pairs lead on
    """

    def __init__(self, frame: Frame, sites: Sites, goal: NF, pruned: Counter[str]) -> None:
        program = frame.program
        self._frame, self._algebra, self._sites, self._goal = frame, frame.algebra, sites, goal
        self._pruned, self._expressions = pruned, frame.expressions
        self._fns = sorted({op.fn for op in program.ops if op.kind.is_function} | frame.algebra.by_form)
        has = {op.kind for op in program.ops}
        known = [kind for kind in Kind if kind in has or kind.assumed or "fn" in kind.fields]
        kinds = sorted(known, key=lambda kind: kind.turn)
        one, two = ([k for k in kinds if k.is_elementwise and k.arity == operands] for operands in (1, 2))
        self._functions = [(k, k.meaning, fn) for k in one for fn in (self._fns if "fn" in k.fields else [""])]
        self._reductions = [kind for kind in kinds if kind.reduces and kind.arity == 1]
        self._ways = [way for kind in two for way in _ways(kind, self._expressions)]
        self.any_pair = any(MARKS[way.first] == ANYWHERE for way in self._ways)
        self._contraction = next(kind for kind in kinds if kind.contracts)
        self._product = next(i for i, way in enumerate(self._ways) if way.kind is self._contraction.terms)
        # An outer product makes a tile larger than both operands: only where the program has a value of those axes.
        self._axis_sets = {value.mask & frame.tile_bits for value in frame.values.values()}
        # Matrix-vector products are products and sums, unless the program writes them as contractions.
        self._thin_dots = any(_is_thin(*(frame.mask(program.op(i).axes) for i in op.inputs))
                              for op in program.ops if op.kind.contracts)  # fmt: skip

    def leads_on(self, nf: NF) -> bool:
        """Is it part of the output's abstract expression?"""
        return self._algebra.sub(nf, self._goal)

    def may_dot(self) -> bool:
        """May a product of matrices arise? Not where of any two inputs one has all axes of the other."""
        frame = self._frame
        loads = [frame.values[op.name].mask & frame.tile_bits for op in frame.program.ops if op.kind is Kind.LOAD]
        if self._thin_dots or len(frame.reductions) > 1:
            return True
        return any(not _is_thin(a, b) for a in loads for b in loads)

    def to_one(self, value: Value) -> Iterator[Application]:
        mask, after, nf, expressions = value.mask, value.after, value.nf, self._expressions
        for kind, meaning, fn in self._functions:
            yield Application(kind, mask, after, meaning(expressions, (nf,), fn, 1), fn=fn)
        yield from self._run(value)
        for kind in self._reductions:
            yield from self._reduced(value, kind)

    def _run(self, value: Value) -> Iterator[Application]:
        """Running sums along an axis that the value has all of: in a loop, tile by tile."""
        for one in self._frame.running:
            if value.mask & one.mask == one.mask:
                nf = one.kind.meaning(self._expressions, (value.nf,), "", one.prime)
                yield Application(one.kind, value.mask, value.after, nf, one.slots, one.axes)

    def _reduced(self, value: Value, kind: Kind) -> Iterator[Application]:
        """Along a tile, and over a loop."""
        frame, mask, after, operands = self._frame, value.mask, value.after, (value.nf,)
        for reduction in frame.reductions:
            if mask & reduction.mask == reduction.mask:
                nf = kind.meaning(self._expressions, operands, "", reduction.prime)
                yield Application(kind, mask & ~reduction.mask, after, nf, reduction.slots, reduction.axes)
        if kind.accumulator is None:
            return
        fn = kind.accumulator.fn
        for axis, slot in frame.loop_slot.items():
            if mask >> slot & 1:
                nf = kind.meaning(self._expressions, operands, "", frame.primes[slot])
                yield Application(Kind.ACCUM, mask & ~(1 << slot), after | 1 << slot, nf, (slot,), (axis,), fn)

    def pair(self, x: NF, y: NF) -> Pair:
        """What each way of `self._ways` makes of two expressions."""
        a, b, leads_on = self._sites.marks(x), self._sites.marks(y), self.leads_on
        nfs: list[NF] = []
        for first, second, make, swapped, distinct, _ in self._ways:
            nf = 0
            if a[first] & b[second] and not (distinct and x == y):
                made = make(y, x) if swapped else make(x, y)
                nf = made if leads_on(made) else 0
            nfs.append(nf)
        return tuple(nfs)

    def results(self, nfs: Pair, a: Value) -> Iterator[NF]:
        """The expressions of a pair that lead on, and those of its product summed at once. a: the first value"""
        yield from nfs
        product = nfs[self._product]
        if product:
            for reduction in self._frame.reductions:
                if a.mask & reduction.mask == reduction.mask:
                    nf = self._expressions.sum(product, reduction.prime)
                    if self.leads_on(nf):
                        yield nf

    def to_two(self, a: Value, b: Value, nfs: Pair) -> Iterator[Application]:
        """nfs: the pair of their expressions"""
        frame = self._frame
        mask, after = a.mask | b.mask, a.after | b.after
        if mask & after & frame.loop_bits:  # a loop's result is not known inside of it
            self._pruned["type"] += 1
            return
        product = nfs[self._product]
        if Kind.MASK in (a.kind, b.kind):
            yield from self._masked(a, b, product)
            return
        tile, tile_a, tile_b = (m & frame.tile_bits for m in (mask, a.mask, b.mask))
        dots = bool(product) and (self._thin_dots or not _is_thin(tile_a, tile_b))
        if tile in (tile_a, tile_b) or tile in self._axis_sets:
            for way, nf in zip(self._ways, nfs, strict=True):
                if nf and not (way.swapped and a is b):
                    yield Application(way.kind, mask, after, nf, swapped=way.swapped)
        elif not dots:
            self._pruned["type"] += 1
        if dots:
            yield from self._dots(a.mask & b.mask, mask, after, product)

    def _masked(self, a: Value, b: Value, nf: NF) -> Iterator[Application]:
        """A mask as a factor of a value that has all of its axes, or none: then it says at which places of a
        concatenation the value is. A value without an exponential may have some, as a mask that is read has of keys.

        If there is an exponential in the value, and the mask has axes of it, it must be the value itself: then the
        kernel can put minus infinity under it, so that what is masked does not count in the row's maximum.
        """
        value, mask = (b, a) if a.kind is Kind.MASK else (a, b)
        if value.kind is Kind.MASK and mask.mask & ~value.mask:  # of two, the one with all axes is the value
            value, mask = mask, value
        frame, axes = self._frame, a.mask | b.mask
        apart = not mask.mask & value.mask or not value.has_exp
        places = mask.mask and apart and axes & frame.tile_bits in self._axis_sets
        under = not mask.mask & ~value.mask and (not value.has_exp or value.kind.is_exponential)
        if not nf or not (places or under):
            self._pruned["type"] += 1
            return
        yield Application(self._contraction.terms, axes, value.after, nf)

    def _dots(self, shared: int, mask: int, after: int, product: NF) -> Iterator[Application]:
        for reduction in self._frame.reductions:
            if shared & reduction.mask == reduction.mask:
                nf = self._expressions.sum(product, reduction.prime)
                yield Application(self._contraction, mask & ~reduction.mask, after, nf, reduction.slots, reduction.axes)


def _ways(kind: Kind, expressions: Expressions) -> Iterator[_Way]:
    """Both orders of the operands, where the order matters."""
    first, second = (MARKS.index(mark) for mark in kind.sites)
    make = getattr(expressions, kind.primitive) if kind.primitive else partial(_meant, kind, expressions)
    yield _Way(first, second, make, False, kind.idempotent, kind)
    if not kind.commutes:
        yield _Way(second, first, make, True, kind.idempotent, kind)


def _meant(kind: Kind, expressions: Expressions, x: NF, y: NF) -> NF:
    return kind.meaning(expressions, (x, y), "", 1)


def _is_thin(a: int, b: int) -> bool:
    """Has one operand no axis of its own: no matrix product?"""
    return not a & ~b or not b & ~a
