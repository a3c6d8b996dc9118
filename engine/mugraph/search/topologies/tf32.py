"""Which products of a topology may take TF32: those of the program that may, and what they are computed by."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from mugraph.ir.ops import Kind, Tf32
from mugraph.search.topologies.edges import Dag
from mugraph.search.topologies.frame import Frame, Value

_Key = tuple[int, bytes]


@dataclass(frozen=True)
class Tf32Marks:
    """known: of the program's values; of equal ones all must have the mark. others: of products that it has not"""

    frame: Frame
    known: Mapping[_Key, Tf32]
    others: Tf32

    def of(self, index: int, dag: Dag, values: Sequence[Value]) -> Tf32:
        """A tile of a product counts as the product that it is added up to. One that the program has not, as where a
        factor of its operands is multiplied later, counts as all of the program's do, if it has rows and columns: a sum
        of squares is none of them."""
        edge = dag[index]
        if not edge.kind.contracts:
            return ""
        whole = index
        while _key(values[whole]) not in self.known:
            sums = [user for user, other in dag.items() if other.kind is Kind.ACCUM and other.inputs == (whole,)]
            if not sums:
                break
            whole = sums[0]
        found = self.known.get(_key(values[whole]))
        if found is not None:
            return found
        left, right = (set(self.frame.axes_of(values[i].mask)) for i in edge.inputs)
        return self.others if left - right and right - left else ""


def tf32_marks(frame: Frame) -> Tf32Marks:
    products: set[Tf32] = {op.tf32 for op in frame.program.ops if op.kind.contracts}
    known: dict[_Key, Tf32] = {}
    for op in frame.program.ops:
        key = _key(frame.values[op.name])
        known[key] = op.tf32 if known.get(key, op.tf32) == op.tf32 else ""
    others: Tf32 = products.pop() if len(products) == 1 else ""
    return Tf32Marks(frame, known, others)


def _key(value: Value) -> _Key:
    return value.mask, value.p.tobytes()
