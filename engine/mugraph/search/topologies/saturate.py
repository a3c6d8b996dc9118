"""Saturation of one loop nest: reaches every distinct value that can lead to the program's output.

Algorithm 1 of Mirage §4 enumerates graphs. Here *values* are enumerated, each once. Every way to compute a value is a
hyperedge, and graphs are read off afterwards (extract.py). Two values are the same if four things are: their axes, the
loops they have passed, their abstract expression, and their residues over the field. Residues alone would not do: equal
values may have different abstract expressions, and to prune by only one of them could cut the way to the optimum
(Theorem 1).

Values are reached in the order of the smallest topology that they may be part of. So at any time all topologies up to
some number of operators have been covered (`complete_to`).
"""

from __future__ import annotations

import heapq
from collections import Counter
from collections.abc import Iterator
from dataclasses import dataclass

from mugraph.ir.ops import Kind
from mugraph.search.algebra.abstract import NF
from mugraph.search.topologies.applying import Application, Applying, Pair
from mugraph.search.topologies.doubts import Doubts, Operands
from mugraph.search.topologies.edges import Edge
from mugraph.search.topologies.frame import Frame, Value
from mugraph.search.topologies.remaining import Remaining, Unbounded
from mugraph.search.topologies.sites import Marks, Sites

CHOICE = 4
"""Work of one choice between edges, in pairs of expressions that are compared by their sites."""
_EVALUATION = 20
"""Work of evaluating one operator over the field."""
_ENTRY_BYTES, _VALUE_BYTES, _EDGE_BYTES = 900, 4000, 400
"""In memory, of a term or normal form with what is remembered of it, a value and an edge: measured, rounded up."""


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
        self._waiting: Counter[int] = Counter()  # values not reached yet, by the operators of any topology they are in
        self._groups: dict[NF, _Group] = {}
        self._doubts = Doubts(max_ops)
        self._landmarks = frame.landmarks()
        self._algebra = algebra
        self._sites = Sites(algebra, self.goal.nf)
        self._applying = Applying(frame, self._sites, self.goal.nf, self.pruned)
        composed = any(op.kind.is_composed for op in program.ops)
        self._remaining = (Unbounded if composed else Remaining)(
            algebra,
            self.goal.nf,
            [frame.primes[slot] for slot in frame.loop_slot.values()],
            {frame.primes[slot]: self._leaves_along(slot) for slot in frame.tile_slot.values()},
            self._applying.may_dot(),
        )
        seen: set[tuple[Kind, NF]] = set()
        for op in program.ops:
            if op.kind.is_leaf:
                value = frame.values[op.name]
                if (op.kind, value.nf) not in seen:
                    seen.add((op.kind, value.nf))
                    self.leaves[self._insert(value, None, 0)] = op.name
        summed = {name for op in program.ops if op.over for name in op.inputs}
        self._counted = {
            index for index, name in self.leaves.items() if name in summed and program.op(name).kind is Kind.MASK
        }

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
        least = self.max_ops + 1
        for operands, after, asked in self._doubts.lost(self._edges):
            least = min(least, max(asked, self._least(operands, after)))
        waiting = (size for size, values in self._waiting.items() if values)
        return min(least, max(self.least_possible, min(waiting, default=least))) - 1

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
                if index not in self.targets:
                    self._waiting[self._least_with(index)] -= 1
                self._enter(index)
                # Nothing of use is computed from the output; a mask is a factor of other values, and nothing else, but
                # where the program counts its ones.
                if self.values[index].kind is Kind.MASK:
                    if index in self._counted:
                        self._unaries(index, self._dags[index])
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
            self._with(index, other, self._applying.pair(self.values[index].nf, self.values[other].nf), dag)
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
        ops = (op for op in self.frame.program.ops if op.kind is Kind.LOAD or op.kind.of_places)
        values = (self.frame.values[op.name] for op in ops)
        return [value.nf for value in values if value.mask >> slot & 1]

    # ------------------------------------------------------------------ applying operators

    def _unaries(self, index: int, dag: int) -> None:
        """All operators on one value. dag: operators below it, as bits."""
        for applied in self._applying.to_one(self.values[index]):
            self._try(applied, (index,), dag)

    def _binaries(self, index: int) -> None:
        a, pruned = self.values[index], self.pruned
        marks = self._sites.marks(a.nf)
        cofactors, factor, divisor = marks.cofactors, marks.factor, marks.divisor
        groups = list(self._groups.values())
        self.work += len(groups)
        cut, any_pair = 0, self._applying.any_pair
        for group in groups:
            b = group.marks
            joined = cofactors & b.cofactors or marks.part & b.part or any_pair
            if joined or factor & (b.factor | b.divisor) or divisor & b.factor:
                self._with_group(index, group)
            else:
                cut += len(group.members)
        pruned["expression"] += cut

    def _with_group(self, index: int, group: _Group) -> None:
        """All operators of two operands on a value and each of a group."""
        nfs = self._applying.pair(self.values[index].nf, group.nf)
        self.work += 3
        if not any(nfs):
            self.pruned["expression"] += len(group.members)
            return
        a, own = self.values[index], self._dags[index]
        distance = min(self._remaining.after(nf) for nf in self._applying.results(nfs, a) if nf)
        if max(own.bit_count(), group.size) + 1 + distance > self.max_ops:
            self.pruned["size"] += len(group.members)
            for other in group.members:
                self._doubt((index, other), distance)
            return
        for other in tuple(group.members):
            self._with(index, other, nfs, own | self._dags[other])

    def _with(self, index: int, other: int, nfs: Pair, dag: int) -> None:
        """All operators on two values. dag: operators below them, as bits."""
        self.work += 1
        in_order = (index, other) if index <= other else (other, index)
        for applied in self._applying.to_two(self.values[index], self.values[other], nfs):
            operands = in_order
            if not applied.kind.commutes:
                operands = (other, index) if applied.swapped else (index, other)
            self._try(applied, operands, dag)

    def _try(self, applied: Application, inputs: Operands, dag: int) -> None:
        """Evaluate one operator, and record what it makes: a new value, or another way to a known one."""
        kind, mask, after, nf, slots, over, fn, _ = applied
        if not self._applying.leads_on(nf):
            self.pruned["expression"] += 1
            return
        distance = self._remaining.after(nf)
        if dag.bit_count() + 1 + distance > self.max_ops:
            self.pruned["size"] += 1
            self._doubt(inputs, distance)
            return
        self.work += _EVALUATION
        operands = tuple(self.values[i] for i in inputs)
        number = self.frame.evaluate(kind, fn, slots, operands)
        if number is None:
            self.pruned["field"] += 1
            return
        edge = Edge(kind, inputs, over, fn)
        index = self._known.get((mask, after, nf, number.p.tobytes()))
        if index is None:
            has_exp = "exp" in kind.primitives or any(i.has_exp for i in operands)
            self._insert(Value(kind, fn, slots, operands, mask, after, nf, number, has_exp), edge, dag)
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

    def _least_with(self, index: int) -> int:
        """Operators of any topology with this value, at least."""
        nf = self.values[index].nf
        return self._remaining.within(nf) + self._remaining.after(nf)

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
        else:
            self._waiting[self._least_with(index)] += 1
        return index

    def _wait(self, index: int) -> None:
        """To be reached later, in its place."""
        nf, size = self.values[index].nf, self.size(index)
        heapq.heappush(self._heap, (nf not in self._landmarks, size + self._remaining.after(nf), size, index))
