"""One value divided by another."""

from mugraph.kinds.kind import Kind, Role
from mugraph.kinds.naming import Term


def _title(of: Term) -> str:
    return "normed" if of.operands[1].kind.primitive == "sqrt" else "quotient"


DIV = Kind(
    "div",
    Role.ELEMENTWISE,
    2,
    meaning=lambda on, of, fn, over: on.div(of[0], of[1]),
    scaled_by=(1,),
    by_inverse="mul",
    shown="{0} ÷ {1}",
    symbol="÷",
    title=_title,
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
