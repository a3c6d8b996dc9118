"""e to the power of a value."""

from mugraph.kinds.kind import Kind, Role

EXP = Kind(
    "exp",
    Role.ELEMENTWISE,
    1,
    meaning=lambda on, of, fn, over: on.exp(of[0]),
    shown="exp({0})",
    symbol="exp",
    title="_exp",
    stem="power",
    turn=1,
    instructions=6,  # with the running maximum and the shift
    ulps=2,
    argument_ulps=2,
    test_cost=14.0,
    triton="tl.exp({0})",  # of one that is no softmax's (codegen/tile/softmax.py)
)
