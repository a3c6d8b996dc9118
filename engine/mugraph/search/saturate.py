"""Value saturation: every distinct tensor-valued function that can lead to the program's output, for one loop nest.

Algorithm 1 of Mirage §4 enumerates graphs; here the *values* are enumerated, each once, with every way to compute it
as a hyperedge, and graphs are read off afterwards (extract.py). A value's identity is its axes, the loops it has
passed, its abstract expression and its residues over the field. The residues alone would not do: abstract expressions
of equal values may differ, and pruning by only one of them could cut the way to the optimum (Theorem 1).
"""

from __future__ import annotations

import heapq
from collections import Counter
from collections.abc import Iterator
from dataclasses import dataclass

from mugraph.ir.ops import Kind
from mugraph.search.abstract import NF
from mugraph.search.frame import Frame, Reduction, Value


@dataclass(frozen=True, slots=True)
class Edge:
    """One way to compute a value: an operator on values, by number. over: axes reduced, or the loop of an ACCUM."""

    kind: Kind
    inputs: tuple[int, ...]
    over: tuple[str, ...] = ()
    fn: str = ""


class Saturation:
    """The values of one loop nest. `steps()` reaches them smallest first, the program's own before the others."""

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
        self.done = False
        self._dags: list[int] = []  # of each value: the operators of its smallest known DAG, as a set of bits
        self._known: dict[tuple[int, int, NF, bytes], int] = {}
        self._heap: list[tuple[bool, int, int]] = []
        self._reached: list[bool] = []
        self._partners: dict[NF, list[int]] = {}
        self._allowed: dict[NF, bool] = {}
        self._pairs: dict[tuple[NF, NF], tuple[NF, NF, NF, NF]] = {}
        self._landmarks = frame.landmarks()
        self._fns = sorted({op.fn for op in program.ops if op.kind is Kind.UNARY})
        self._has = {op.kind for op in program.ops}
        # An outer product makes a tile larger than both operands: only where the program has a value of those axes.
        self._axis_sets = {value.mask & frame.tile_bits for value in frame.values.values()}
        # Matrix-vector products are MUL and SUM, unless the program writes them as products.
        self._thin_dots = any(_is_thin(*(frame.mask(program.op(i).axes) for i in op.inputs))
                              for op in program.ops if op.kind is Kind.DOT)  # fmt: skip
        self._algebra = algebra
        seen: set[tuple[Kind, NF]] = set()
        for op in program.ops:
            if op.kind in (Kind.LOAD, Kind.CONST):
                value = frame.values[op.name]
                if (op.kind, value.nf) not in seen:
                    seen.add((op.kind, value.nf))
                    self.leaves[self._insert(value, None, 0)] = op.name

    def size(self, index: int) -> int:
        """Operators in the smallest DAG known for a value (an upper bound of the smallest there is)."""
        return self._dags[index].bit_count()

    def steps(self) -> Iterator[bool]:
        """Reach one value after the other; True after one that added a target."""
        while self._heap:
            if len(self.values) > self.max_values:
                return
            _, _, index = heapq.heappop(self._heap)
            if self._reached[index]:
                continue
            self._reached[index] = True
            before = len(self.targets)
            self._partners.setdefault(self.values[index].nf, []).append(index)
            if index not in self.targets:  # nothing of use is computed from the output
                self._unaries(index)
                self._binaries(index)
            yield len(self.targets) > before
        self.done = True

    # ------------------------------------------------------------------ applying operators

    def _unaries(self, index: int) -> None:
        value, algebra = self.values[index], self._algebra
        mask, after, frame = value.mask, value.after, self.frame
        dag = self._dags[index]
        if not value.is_leaf and dag.bit_count() >= self.max_ops:
            self.pruned["size"] += 1
            return
        here = (index,)
        if Kind.SQRT in self._has:
            self._try(Kind.SQRT, here, mask, after, algebra.sqrt(value.nf), dag)
        if Kind.EXP in self._has:
            self._try(Kind.EXP, here, mask, after, algebra.exp(value.nf), dag)
        for fn in self._fns:
            self._try(Kind.UNARY, here, mask, after, algebra.unary(fn, value.nf), dag, fn=fn)
        for reduction in frame.reductions:
            if mask & reduction.mask == reduction.mask:
                nf = algebra.sum(reduction.prime, value.nf)
                self._try(Kind.SUM, here, mask & ~reduction.mask, after, nf, dag, reduction.slots, reduction.axes)
        for axis, slot in frame.loop_slot.items():
            if mask >> slot & 1:
                nf = algebra.sum(frame.primes[slot], value.nf)
                self._try(Kind.ACCUM, here, mask & ~(1 << slot), after | 1 << slot, nf, dag, (slot,), (axis,))

    def _binaries(self, index: int) -> None:
        a, frame = self.values[index], self.frame
        dag_a, dags, values = self._dags[index], self._dags, self.values
        tiles, loops, room = frame.tile_bits, frame.loop_bits, self.max_ops
        products = [reduction for reduction in frame.reductions if a.mask & reduction.mask == reduction.mask]
        pruned = self.pruned
        for nf, partners in list(self._partners.items()):
            pair = self._pair(a.nf, nf)
            total, product, quotient, reverse = pair
            if not (total or product or quotient or reverse):
                pruned["expression"] += len(partners)
                continue
            for other in partners:
                b = values[other]
                mask, after = a.mask | b.mask, a.after | b.after
                if mask & after & loops:  # a loop's result is not known inside of it
                    pruned["type"] += 1
                    continue
                dag = dag_a | dags[other]
                if dag.bit_count() >= room:
                    pruned["size"] += 1
                    continue
                inputs = (index, other) if index <= other else (other, index)
                tile, tile_a, tile_b = mask & tiles, a.mask & tiles, b.mask & tiles
                if tile in (tile_a, tile_b) or tile in self._axis_sets:
                    if total:
                        self._try(Kind.ADD, inputs, mask, after, total, dag)
                    if product:
                        self._try(Kind.MUL, inputs, mask, after, product, dag)
                    if quotient:
                        self._try(Kind.DIV, (index, other), mask, after, quotient, dag)
                    if reverse and index != other:
                        self._try(Kind.DIV, (other, index), mask, after, reverse, dag)
                else:
                    pruned["type"] += 1
                if product and (self._thin_dots or not _is_thin(tile_a, tile_b)):
                    self._dots(products, b, inputs, mask, after, product, dag)

    def _dots(
        self, products: list[Reduction], b: Value, inputs: tuple[int, int], mask: int, after: int, nf: NF, dag: int
    ) -> None:
        for reduction in products:
            if b.mask & reduction.mask == reduction.mask:
                total = self._algebra.sum(reduction.prime, nf)
                self._try(Kind.DOT, inputs, mask & ~reduction.mask, after, total, dag, reduction.slots, reduction.axes)

    def _pair(self, x: NF, y: NF) -> tuple[NF, NF, NF, NF]:
        """Abstract expressions of x + y, x * y, x / y and y / x; 0 for those that cannot lead to the goal."""
        found = self._pairs.get((x, y))
        if found is None:
            algebra = self._algebra
            both = (algebra.add(x, y), algebra.mul(x, y), algebra.div(x, y), algebra.div(y, x))
            total, product, quotient, reverse = (nf if self._leads_on(nf) else 0 for nf in both)
            found = self._pairs[x, y] = (total, product, quotient, reverse)
            self._pairs[y, x] = (total, product, reverse, quotient)
        return found

    def _leads_on(self, nf: NF) -> bool:
        found = self._allowed.get(nf)
        if found is None:
            found = self._allowed[nf] = self._algebra.sub(nf, self.goal.nf)
        return found

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
        self.edges[index].append(edge)
        better = dag | 1 << index
        if not dag >> index & 1 and better.bit_count() < self._dags[index].bit_count():
            self._dags[index] = better
            if not self._reached[index]:
                heapq.heappush(self._heap, (nf not in self._landmarks, better.bit_count(), index))

    def _insert(self, value: Value, edge: Edge | None, dag: int) -> int:
        index = len(self.values)
        raw = value.p.tobytes()
        self.values.append(value)
        self.edges.append([] if edge is None else [edge])
        self._dags.append(0 if edge is None else dag | 1 << index)
        self._reached.append(False)
        self._known[value.mask, value.after, value.nf, raw] = index
        heapq.heappush(self._heap, (value.nf not in self._landmarks, self.size(index), index))
        if edge is not None and (value.mask, value.nf, raw) == self._goal_key:
            self.targets.append(index)
        return index


def _is_thin(a: int, b: int) -> bool:
    """Has one operand no axis of its own: no matrix product?"""
    return not a & ~b or not b & ~a
