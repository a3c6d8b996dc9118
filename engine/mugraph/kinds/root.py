"""The square root."""

from mugraph.kinds.kind import Kind, Role

SQRT = Kind(
    "sqrt",
    Role.ELEMENTWISE,
    1,
    meaning=lambda on, of, fn, over: on.sqrt(of[0]),
    shown="sqrt({0})",
    symbol="√",
    title="root",
    stem="root",
    turn=0,
    instructions=4,
    ulps=2,
    test_cost=40.0,
    triton="tl.sqrt({0})",
)
