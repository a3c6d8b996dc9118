"""The square root."""

from mugraph.kinds.kind import Kind, Role
from mugraph.kinds.naming import Term, factor_of, is_square


def _title(of: Term) -> str:
    """The root of a mean square, with an epsilon or without."""
    (operand,) = of.operands
    inside = [operand, *operand.operands] if operand.kind.shifted_by else [operand]
    for one in inside:
        if factor_of(one) is not None and any(_is_of_squares(part) for part in one.operands):
            return "rms"
        if _is_of_squares(one):
            return "length"
    return "root"


def _is_of_squares(term: Term) -> bool:
    return term.kind.is_plain_sum and is_square(term.operands[0])


SQRT = Kind(
    "sqrt",
    Role.ELEMENTWISE,
    1,
    meaning=lambda on, of, fn, over: on.sqrt(of[0]),
    shown="sqrt({0})",
    symbol="√",
    title=_title,
    stem="root",
    turn=0,
    instructions=4,
    ulps=2,
    test_cost=40.0,
    triton="tl.sqrt({0})",
)
