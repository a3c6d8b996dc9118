"""Value saturation: every distinct tensor-valued function that can lead to the program's output, for one loop nest.

Algorithm 1 of Mirage §4 enumerates graphs; here the *values* are enumerated, each once, with every way to compute it
as a hyperedge, and graphs are read off afterwards (extract.py). A value's identity is its axes, the loops it has
passed, its abstract expression and its residues over the field. The residues alone would not do: abstract expressions
of equal values may differ, and pruning by only one of them could cut the way to the optimum (Theorem 1).

Values are reached in the order of the smallest topology they may be part of, so that at any time the space up to some
number of operators is behind (`complete_to`).
"""

from __future__ import annotations

import heapq
from collections import Counter
from collections.abc import Iterator
from dataclasses import dataclass

from mugraph.ir.ops import LARGEST, LEAVES, Kind
from mugraph.search.abstract import NF
from mugraph.search.doubts import Doubts, Operands
from mugraph.search.edges import Edge
from mugraph.search.frame import Frame, Reduction, Value
from mugraph.search.remaining import Remaining
from mugraph.search.sites import Marks, Sites

CHOICE = 4
"""Work of one choice between edges, in pairs of expressions that are compared by their sites."""
_EVALUATION = 20
"""Work of evaluating one operator over the field."""
_ENTRY_BYTES, _VALUE_BYTES, _EDGE_BYTES = 900, 4000, 400
"""In memory, of a term or normal form with what is remembered of it, a value and an edge: measured, rounded up."""


_Pair = tuple[NF, NF, NF, NF, NF]


@dataclass(slots=True)
class _Group:
    """Reached values of one abstract expression. size: operators in the smallest DAG of any of them."""

    nf: NF
    marks: Marks
    within: int
    size: int
    members: list[int]


class Saturation:
    """The values of one loop nest. `steps()` reaches them: the program's own before the others, then by the size of the
    smallest topology they may be in.

    over: nothing is left to reach; done: and nothing was lost
    work: done so far, in comparisons of two abstract expressions or as much time (deterministic, unlike a clock)
    """

    def __init__(self, frame: Frame, max_ops: int, max_values: int) -> None:
        self.frame, self.max_ops, self.max_values = frame, max_ops, max_values
        program, algebra = frame.program, frame.algebra
        (output,) = program.outputs
        self.goal = frame.values[output]
        self._goal_key = (self.goal.mask, self.goal.nf, self.goal.p.tobytes())
        self.values: list[Value] = []
        self.edges: list[list[Edge]] = []
        self.leaves: dict[int, str] = {}
        self.targets: list[int] = []
        self.pruned: Counter[str] = Counter()
        self.done = self.over = False
        self.work = 0
        self._edges = 0
        self._dags: list[int] = []  # of each value: the operators of its smallest known DAG, as a set of bits
        self._known: dict[tuple[int, int, NF, bytes], int] = {}
        self._heap: list[tuple[bool, int, int, int]] = []
        self._reached: list[bool] = []
        self._groups: dict[NF, _Group] = {}
        self._doubts = Doubts(max_ops)
        self._landmarks = frame.landmarks()
        self._fns = sorted({op.fn for op in program.ops if op.kind is Kind.UNARY} | algebra.by_form)
        self._has = {op.kind for op in program.ops}
        # An outer product makes a tile larger than both operands: only where the program has a value of those axes.
        self._axis_sets = {value.mask & frame.tile_bits for value in frame.values.values()}
        # Matrix-vector products are MUL and SUM, unless the program writes them as products.
        self._thin_dots = any(_is_thin(*(frame.mask(program.op(i).axes) for i in op.inputs))
                              for op in program.ops if op.kind is Kind.DOT)  # fmt: skip
        self._algebra = algebra
        self._sites = Sites(algebra, self.goal.nf)
        self._remaining = Remaining(
            algebra,
            self.goal.nf,
            [frame.primes[slot] for slot in frame.loop_slot.values()],
            {frame.primes[slot]: self._leaves_along(slot) for slot in frame.tile_slot.values()},
            self._may_dot(),
        )
        seen: set[tuple[Kind, NF]] = set()
        for op in program.ops:
            if op.kind in LEAVES:
                value = frame.values[op.name]
                if (op.kind, value.nf) not in seen:
                    seen.add((op.kind, value.nf))
                    self.leaves[self._insert(value, None, 0)] = op.name

    def size(self, index: int) -> int:
        """Operators in the smallest DAG known for a value (an upper bound of the smallest there is)."""
        return self._dags[index].bit_count()

    @property
    def least_possible(self) -> int:
        """No topology has fewer operators."""
        return self._remaining.within(self.goal.nf)

    @property
    def complete_to(self) -> int:
        """Every topology of at most this many operators has all its values and edges here."""
        remaining = self._remaining
        least = self.max_ops + 1
        for operands, after, asked in self._doubts.lost(self._edges):
            least = min(least, max(asked, self._least(operands, after)))
        for index, value in enumerate(self.values):
            if not self._reached[index] and index not in self.targets:
                least = min(least, max(self.least_possible, remaining.within(value.nf) + remaining.after(value.nf)))
        return least - 1

    @property
    def bytes(self) -> int:
        """Memory it holds, by estimate."""
        return self._algebra.size * _ENTRY_BYTES + len(self.values) * _VALUE_BYTES + self._edges * _EDGE_BYTES

    def steps(self) -> Iterator[bool]:
        """Reach one value after the other; True after one that added a target."""
        while self._heap or self._resume():
            if len(self.values) > self.max_values:
                return
            before = len(self.targets)
            if self._heap:
                *_, index = heapq.heappop(self._heap)
                if self._reached[index]:
                    continue
                self._reached[index] = True
                self._enter(index)
                # Nothing of use is computed from the output; a mask is a factor of other values, and nothing else.
                if self.values[index].kind is Kind.MASK:
                    self._binaries(index)
                elif index not in self.targets:
                    self._unaries(index, self._dags[index])
                    self._binaries(index)
            yield len(self.targets) > before
        self.done = self.complete_to >= self.max_ops
        self.over = True

    def _resume(self) -> bool:
        """What the size bound cut off is looked at again when nothing else is left, an operator at a time. Was there
        one?"""
        asked = self._doubts.ask(self.edges, self.leaves, self._dags, self._edges)
        self.work += self._doubts.work * CHOICE
        if asked is None:
            return False
        operands, dag = asked
        if dag and len(operands) == 1:
            self._unaries(operands[0], dag)
        elif dag:
            index, other = operands
            self._with(index, other, self._pair(self.values[index].nf, self.values[other].nf), dag)
        return True

    def _enter(self, index: int) -> None:
        nf, size = self.values[index].nf, self.size(index)
        group = self._groups.get(nf)
        if group is None:
            group = _Group(nf, self._sites.marks(nf), self._remaining.within(nf), size, [])
            self._groups[nf] = group
        group.members.append(index)
        group.size = min(group.size, size)

    def _leaves_along(self, slot: int) -> list[NF]:
        leaves = (Kind.LOAD, Kind.MASK)
        values = (self.frame.values[op.name] for op in self.frame.program.ops if op.kind in leaves)
        return [value.nf for value in values if value.mask >> slot & 1]

    def _may_dot(self) -> bool:
        """May a DOT arise from this program's axes? Not where the axes of any two values lie one in the other."""
        loads = [self.frame.values[op.name].mask & self.frame.tile_bits for op in self.frame.program.ops
                 if op.kind is Kind.LOAD]  # fmt: skip
        if self._thin_dots or len(self.frame.reductions) > 1:
            return True
        return any(not _is_thin(a, b) for a in loads for b in loads)

    # ------------------------------------------------------------------ applying operators

    def _unaries(self, index: int, dag: int) -> None:
        value, algebra = self.values[index], self._algebra
        mask, after, frame = value.mask, value.after, self.frame
        here = (index,)
        if Kind.SQRT in self._has:
            self._try(Kind.SQRT, here, mask, after, algebra.sqrt(value.nf), dag)
        if Kind.EXP in self._has:
            self._try(Kind.EXP, here, mask, after, algebra.exp(value.nf), dag)
        for fn in self._fns:
            self._try(Kind.UNARY, here, mask, after, algebra.unary(fn, value.nf), dag, fn=fn)
        if Kind.AMAX in self._has:
            self._largest(index, dag)
        for reduction in frame.reductions:
            if mask & reduction.mask == reduction.mask:
                nf = algebra.sum(reduction.prime, value.nf)
                self._try(Kind.SUM, here, mask & ~reduction.mask, after, nf, dag, reduction.slots, reduction.axes)
        for axis, slot in frame.loop_slot.items():
            if mask >> slot & 1:
                nf = algebra.sum(frame.primes[slot], value.nf)
                self._try(Kind.ACCUM, here, mask & ~(1 << slot), after | 1 << slot, nf, dag, (slot,), (axis,))

    def _largest(self, index: int, dag: int) -> None:
        """The maxima of a value along a tile, and over a loop."""
        value, algebra, frame, here = self.values[index], self._algebra, self.frame, (index,)
        mask, after = value.mask, value.after
        for reduction in frame.reductions:
            if mask & reduction.mask == reduction.mask:
                nf = algebra.amax(reduction.prime, value.nf)
                self._try(Kind.AMAX, here, mask & ~reduction.mask, after, nf, dag, reduction.slots, reduction.axes)
        for axis, slot in frame.loop_slot.items():
            if mask >> slot & 1:
                nf = algebra.amax(frame.primes[slot], value.nf)
                rest, passed = mask & ~(1 << slot), after | 1 << slot
                self._try(Kind.ACCUM, here, rest, passed, nf, dag, (slot,), (axis,), LARGEST)

    def _binaries(self, index: int) -> None:
        a, pruned = self.values[index], self.pruned
        marks = self._sites.marks(a.nf)
        cofactors, factor, divisor = marks.cofactors, marks.factor, marks.divisor
        groups = list(self._groups.values())
        self.work += len(groups)
        cut = 0
        for group in groups:
            b = group.marks
            joined = cofactors & b.cofactors or marks.part & b.part
            if joined or factor & (b.factor | b.divisor) or divisor & b.factor:
                self._with_group(index, group)
            else:
                cut += len(group.members)
        pruned["expression"] += cut

    def _with_group(self, index: int, group: _Group) -> None:
        """All operators of two operands on a value and each of a group."""
        nfs = self._pair(self.values[index].nf, group.nf)
        self.work += 3
        if not any(nfs):
            self.pruned["expression"] += len(group.members)
            return
        a, own = self.values[index], self._dags[index]
        distance = min(self._remaining.after(nf) for nf in self._results(nfs, a) if nf)
        if max(own.bit_count(), group.size) + 1 + distance > self.max_ops:
            self.pruned["size"] += len(group.members)
            for other in group.members:
                self._doubt((index, other), distance)
            return
        for other in tuple(group.members):
            self._with(index, other, nfs, own | self._dags[other])

    def _results(self, nfs: _Pair, a: Value) -> Iterator[NF]:
        """Those of the operators, and of products that reduce at once."""
        yield from nfs
        if nfs[1]:
            for reduction in self.frame.reductions:
                if a.mask & reduction.mask == reduction.mask:
                    nf = self._algebra.sum(reduction.prime, nfs[1])
                    if self._leads_on(nf):
                        yield nf

    def _with(self, index: int, other: int, nfs: _Pair, dag: int) -> None:
        """All operators on two values. dag: operators below them."""
        a, b, frame = self.values[index], self.values[other], self.frame
        mask, after = a.mask | b.mask, a.after | b.after
        self.work += 1
        if mask & after & frame.loop_bits:  # a loop's result is not known inside of it
            self.pruned["type"] += 1
            return
        total, product, quotient, reverse, larger = nfs
        if Kind.MASK in (a.kind, b.kind):
            self._masked(index, other, product, dag)
            return
        inputs = (index, other) if index <= other else (other, index)
        tile, tile_a, tile_b = (m & frame.tile_bits for m in (mask, a.mask, b.mask))
        dots = bool(product) and (self._thin_dots or not _is_thin(tile_a, tile_b))
        if tile in (tile_a, tile_b) or tile in self._axis_sets:
            if total:
                self._try(Kind.ADD, inputs, mask, after, total, dag)
            if larger:
                self._try(Kind.MAX, inputs, mask, after, larger, dag)
            if product:
                self._try(Kind.MUL, inputs, mask, after, product, dag)
            if quotient:
                self._try(Kind.DIV, (index, other), mask, after, quotient, dag)
            if reverse and index != other:
                self._try(Kind.DIV, (other, index), mask, after, reverse, dag)
        elif not dots:
            self.pruned["type"] += 1
        if dots:
            products = [r for r in frame.reductions if a.mask & b.mask & r.mask == r.mask]
            self._dots(products, inputs, mask, after, product, dag)

    def _masked(self, index: int, other: int, nf: NF, dag: int) -> None:
        """A mask as a factor: of a value with all of its axes and, where that has an exponential in it, of the
        exponential itself. Only there is it minus infinity before the exponential, which the maximum must know."""
        value, mask = self.values[index], self.values[other]
        if value.kind is Kind.MASK:
            value, mask = mask, value
        if not nf or mask.mask & ~value.mask or (value.has_exp and value.kind is not Kind.EXP):
            self.pruned["type"] += 1
            return
        inputs = (index, other) if index <= other else (other, index)
        self._try(Kind.MUL, inputs, value.mask, value.after, nf, dag)

    def _dots(
        self, products: list[Reduction], inputs: tuple[int, int], mask: int, after: int, nf: NF, dag: int
    ) -> None:
        for reduction in products:
            total = self._algebra.sum(reduction.prime, nf)
            self._try(Kind.DOT, inputs, mask & ~reduction.mask, after, total, dag, reduction.slots, reduction.axes)

    def _pair(self, x: NF, y: NF) -> _Pair:
        """Abstract expressions of x + y, x * y, x / y, y / x and max(x, y); 0 for those that cannot lead to the goal
        (and of the maximum of a value and itself)."""
        a, b, algebra = self._sites.marks(x), self._sites.marks(y), self._algebra
        return (
            self._kept(algebra.add(x, y)) if a.cofactors & b.cofactors else 0,
            self._kept(algebra.mul(x, y)) if a.factor & b.factor else 0,
            self._kept(algebra.div(x, y)) if a.factor & b.divisor else 0,
            self._kept(algebra.div(y, x)) if b.factor & a.divisor else 0,
            self._kept(algebra.maximum(x, y)) if a.part & b.part and Kind.MAX in self._has and x != y else 0,
        )

    def _kept(self, nf: NF) -> NF:
        return nf if self._leads_on(nf) else 0

    def _leads_on(self, nf: NF) -> bool:
        return self._algebra.sub(nf, self.goal.nf)

    def _try(
        self,
        kind: Kind,
        inputs: tuple[int, ...],
        mask: int,
        after: int,
        nf: NF,
        dag: int,
        slots: tuple[int, ...] = (),
        over: tuple[str, ...] = (),
        fn: str = "",
    ) -> None:
        """Evaluate one operator, and record what it makes: a new value, or another way to a known one."""
        if not self._leads_on(nf):
            self.pruned["expression"] += 1
            return
        distance = self._remaining.after(nf)
        if dag.bit_count() + 1 + distance > self.max_ops:
            self.pruned["size"] += 1
            self._doubt(inputs, distance)
            return
        self.work += _EVALUATION
        operands = tuple(self.values[i] for i in inputs)
        p = self.frame.evaluate(kind, fn, slots, operands)
        if p is None:
            self.pruned["field"] += 1
            return
        edge = Edge(kind, inputs, over, fn)
        index = self._known.get((mask, after, nf, p.tobytes()))
        if index is None:
            has_exp = kind is Kind.EXP or any(i.has_exp for i in operands)
            self._insert(Value(kind, fn, slots, operands, mask, after, nf, p, None, has_exp), edge, dag)
            return
        self.pruned["duplicate"] += 1
        if index in inputs:  # x / sqrt(x) == sqrt(x): by cancellation, no way to compute it
            return
        if edge in self.edges[index]:
            return
        self.edges[index].append(edge)
        self._edges += 1
        better = dag | 1 << index
        if not dag >> index & 1 and better.bit_count() < self._dags[index].bit_count():
            self._dags[index] = better
            if not self._reached[index]:
                self._wait(index)

    def _doubt(self, inputs: Operands, distance: int) -> None:
        """Cut by the size of the DAGs known: to be looked at again, unless every DAG is too large."""
        if self._least(inputs, distance) <= self.max_ops:
            self._doubts.add(inputs, distance)

    def _least(self, inputs: Operands, distance: int) -> int:
        """Operators of any topology in which `distance` follow an operator on these values, at least."""
        return 1 + distance + max(self._remaining.within(self.values[i].nf) for i in inputs)

    def _insert(self, value: Value, edge: Edge | None, dag: int) -> int:
        index = len(self.values)
        raw = value.p.tobytes()
        self.values.append(value)
        self.edges.append([] if edge is None else [edge])
        self._dags.append(0 if edge is None else dag | 1 << index)
        self._reached.append(False)
        self._edges += edge is not None
        self._known[value.mask, value.after, value.nf, raw] = index
        self._wait(index)
        if edge is not None and (value.mask, value.nf, raw) == self._goal_key:
            self.targets.append(index)
        return index

    def _wait(self, index: int) -> None:
        """To be reached later, in its place."""
        nf, size = self.values[index].nf, self.size(index)
        heapq.heappush(self._heap, (nf not in self._landmarks, size + self._remaining.after(nf), size, index))


def _is_thin(a: int, b: int) -> bool:
    """Has one operand no axis of its own: no matrix product?"""
    return not a & ~b or not b & ~a
