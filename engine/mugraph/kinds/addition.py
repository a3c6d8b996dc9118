"""The sum of two values, and along axes."""

from mugraph.kinds.kind import Accumulator, Kind, Role
from mugraph.kinds.naming import Term, after, factor_of, is_square


def _of_two(of: Term) -> str:
    return "difference" if any(factor_of(operand) == -1.0 for operand in of.operands) else "added"


def _along_axes(of: Term) -> str:
    (operand,) = of.operands
    if operand.kind.is_exponential:
        return "row_sum"
    return "sum_of_squares" if is_square(operand) else after(operand.name, "sum")


ADDED_UP = Accumulator(
    fn="",
    kind="sum",
    joins="add",
    repeated="mul",
    neutral=0.0,
    shown="accumulate {0} over {over}",
    symbol="accum {over}",
)

ADD = Kind(
    "add",
    Role.ELEMENTWISE,
    2,
    meaning=lambda on, of, fn, over: on.add(of[0], of[1]),
    commutes=True,
    shifted_by=(1, 0),
    neutral=0.0,
    shown="{0} + {1}",
    symbol="+",
    title=_of_two,
    stem="added",
    sites=("cofactors", "cofactors"),
    assumed=True,
    triton="{0} + {1:product}",
)

SUM = Kind(
    "sum",
    Role.REDUCING,
    1,
    meaning=lambda on, of, fn, over: on.sum(of[0], over),
    fields=("over",),
    accumulator=ADDED_UP,
    shown="sum over {over} of {0}",
    symbol="Σ {over}",
    look="reduce",
    title=_along_axes,
    stem="total",
    assumed=True,
    turn=4,
    triton="tl.sum",
)
