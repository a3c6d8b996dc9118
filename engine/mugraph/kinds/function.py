"""A function of one value that is named in `fn` (ops/functions/unary.py): silu, relu, tanh, ..."""

from mugraph.kinds.kind import Kind, Role

UNARY = Kind(
    "unary",
    Role.ELEMENTWISE,
    1,
    meaning=lambda on, of, fn, over: on.unary(fn, of[0]),
    fields=("fn",),
    shown="{fn}({0})",
    symbol="{fn}",
    title="_{fn}",
    turn=2,
    instructions=4,
    ulps=2,
    test_cost=4.0,
)
