"""The Lax fragment (Mirage §5): multi-linear operators, division, roots, silu, and at most one exponential on a path.

sigmoid, tanh and GELU by tanh are made of one exponential (ops/functions/through_exp.py) and count as one.
"""

from __future__ import annotations

from collections.abc import Sequence

from mugraph.ir.ops import Op

EXPONENTIAL = frozenset({"sigmoid", "tanh", "gelu_tanh"})
"""`fn` of a UNARY that is made of one exponential."""


def why_not_lax(ops: Sequence[Op]) -> str | None:
    """Why a graph is outside of it; None where it is inside."""
    exps: dict[str, int] = {}
    for op in ops:
        is_exponential = "exp" in op.kind.primitives or (op.kind.is_function and op.fn in EXPONENTIAL)
        if op.kind.chooses or op.kind.opaque or (op.kind.is_function and not is_exponential and op.fn != "silu"):
            return f"{op.fn or op.kind} is outside the Lax fragment"
        exps[op.name] = max((exps.get(name, 0) for name in op.inputs), default=0) + is_exponential
        if exps[op.name] > 1:
            return f"{op.name} is a second exponential on its path"
    return None
