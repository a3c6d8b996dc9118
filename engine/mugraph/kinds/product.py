"""The product of two values, and that product summed along axes: a matrix product."""

from mugraph.kinds.addition import ADDED_UP
from mugraph.kinds.kind import Kind, Role
from mugraph.kinds.naming import Term, after, factor_of, is_square


def _of_two(of: Term) -> str:
    one, other = of.operands
    if is_square(of):
        return after(one.name, "squared")
    factor = factor_of(of)
    if factor is None:
        return "product"
    scaled = other if one.constant is not None else one
    if factor == -1.0:
        return after(scaled.name, "negated")
    if scaled.kind.is_plain_sum and 0.0 < factor < 1.0:
        return "mean_square" if is_square(scaled.operands[0]) else "mean"
    return after(scaled.name, "scaled")


def _along_axes(of: Term) -> str:
    """As on a blackboard: xy of x and y."""
    names = [operand.name for operand in of.operands]
    return "".join(names) if all(len(name) == 1 for name in names) else "product"


MUL = Kind(
    "mul",
    Role.ELEMENTWISE,
    2,
    meaning=lambda on, of, fn, over: on.mul(of[0], of[1]),
    commutes=True,
    scaled_by=(1, 0),
    neutral=1.0,
    absorbing=0.0,
    shown="{0} × {1}",
    symbol="×",
    of_itself="square",
    title=_of_two,
    stem="product",
    juxtaposed=True,
    sites=("factor", "factor"),
    assumed=True,
    turn=2,
    triton="{0:product} * {1:atom}",
    negated="-",
    constant="scale",
)

DOT = Kind(
    "dot",
    Role.REDUCING,
    2,
    meaning=lambda on, of, fn, over: on.dot(of[0], of[1], over),
    fields=("over",),
    commutes=True,
    terms="mul",
    accumulator=ADDED_UP,
    shown="{0} @ {1} over {over}",
    symbol="matmul",
    look="matmul",
    title=_along_axes,
    stem="dot",
    assumed=True,
)
