"""The product of two values, and that product summed along axes: a matrix product."""

from mugraph.kinds.addition import ADDED_UP
from mugraph.kinds.kind import Kind, Role

MUL = Kind(
    "mul",
    Role.ELEMENTWISE,
    2,
    meaning=lambda on, of, fn, over: on.mul(of[0], of[1]),
    commutes=True,
    scaled_by=(1, 0),
    shown="{0} × {1}",
    symbol="×",
    of_itself="square",
    title="product",
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
    title="product",
    stem="dot",
    assumed=True,
)
