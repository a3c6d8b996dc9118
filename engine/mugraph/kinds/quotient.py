"""One value divided by another."""

from mugraph.kinds.kind import Kind, Role

DIV = Kind(
    "div",
    Role.ELEMENTWISE,
    2,
    meaning=lambda on, of, fn, over: on.div(of[0], of[1]),
    scaled_by=(1,),
    shown="{0} ÷ {1}",
    symbol="÷",
    title="quotient",
    stem="quotient",
    sites=("factor", "divisor"),
    assumed=True,
    turn=3,
    instructions=2,
    ulps=2,
    test_cost=8.0,
    triton="{0:product} / {1:atom}",
    inverted="1.0 / ",
    constant="scale",
)
