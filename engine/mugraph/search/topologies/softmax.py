"""Which topologies with an exp can be computed safely in half precision (a running maximum, rescaled accumulators).

Softmax is invariant under a shift of its logits: an output is safe when it is homogeneous of degree 0 in each
exp(c). The degrees follow from the operators alone.
"""

from __future__ import annotations

from collections.abc import Iterable

from mugraph.ir.ops import Kind, Op


def is_shift_invariant(ops: Iterable[Op]) -> bool:
    """Is every result that leaves the graph of degree 0 in every exp? Results: STOREs, or values nothing uses."""
    ops = tuple(ops)
    used = {name for op in ops for name in op.inputs}
    for source in ops:
        if source.kind is not Kind.EXP:
            continue
        degrees: dict[str, float] = {}
        for op in ops:
            degree = 1.0 if op is source else _degree(op, [degrees[i] for i in op.inputs])
            if degree is None or (degree and (op.kind is Kind.STORE or op.name not in used)):
                return False
            degrees[op.name] = degree
    return True


def _degree(op: Op, inputs: list[float]) -> float | None:
    """Degree of the operator's result; None where it has none."""
    match op.kind:
        case Kind.LOAD | Kind.CONST | Kind.MASK:
            return 0.0
        case Kind.MUL | Kind.DOT:
            return inputs[0] + inputs[1]
        case Kind.DIV:
            return inputs[0] - inputs[1]
        case Kind.SQRT:
            return inputs[0] / 2
        case Kind.SUM | Kind.ACCUM | Kind.STORE if not op.fn:
            return inputs[0]
        case Kind.ADD:
            return inputs[0] if inputs[0] == inputs[1] else None
        case _:
            return None if any(inputs) else 0.0
