"""Which topologies with an exp can be computed safely in half precision (a running maximum, rescaled accumulators).

Softmax is invariant under a shift of its logits: an output is safe when it is homogeneous of degree 0 in each
exp(c). The degrees follow from the operators alone.
"""

from __future__ import annotations

from collections.abc import Collection, Iterable, Sequence

from mugraph.ir.ops import Kind, Op
from mugraph.ops.functions.degrees import Degrees, NoDegree

_DEGREES = Degrees()


def is_shift_invariant(ops: Iterable[Op]) -> bool:
    """Is every result that leaves the graph of degree 0 in every exp? Results: STOREs, or values nothing uses."""
    ops = tuple(ops)
    return len(shift_invariant(ops)) == sum(op.kind.is_exponential for op in ops)


def shift_invariant(ops: Iterable[Op]) -> frozenset[str]:
    """The exps in which every result is of degree 0: those of a softmax, not a gate's or a decay's."""
    ops = tuple(ops)
    used = {name for op in ops for name in op.inputs}
    return frozenset(op.name for op in ops if op.kind.is_exponential and _is_invariant(op, ops, used))


def _is_invariant(source: Op, ops: Sequence[Op], used: Collection[str]) -> bool:
    degrees: dict[str, float] = {}
    for op in ops:
        degree = 1.0 if op is source else _degree(op, [degrees[i] for i in op.inputs])
        if degree is None or (degree and (op.kind is Kind.STORE or op.name not in used)):
            return False
        degrees[op.name] = degree
    return True


def _degree(op: Op, inputs: list[float]) -> float | None:
    """Degree of the operator's result; None where it has none."""
    if not inputs:
        return 0.0
    if op.kind is Kind.STORE:
        return inputs[0]
    try:
        return op.kind.meaning(_DEGREES, inputs, op.fn, op.over)
    except NoDegree:
        return None
