"""The larger of two values, and the largest along axes."""

from math import inf

from mugraph.kinds.kind import Accumulator, Kind, Role

MAX = Kind(
    "max",
    Role.ELEMENTWISE,
    2,
    meaning=lambda on, of, fn, over: on.maximum(of[0], of[1]),
    commutes=True,
    chooses=True,
    idempotent=True,
    shown="max({0}, {1})",
    symbol="max",
    title="larger",
    stem="larger",
    sites=("part", "part"),
    turn=1,
    triton="tl.maximum({0}, {1}, propagate_nan=tl.PropagateNan.ALL)",
    constant="limit",
)

AMAX = Kind(
    "amax",
    Role.REDUCING,
    1,
    meaning=lambda on, of, fn, over: on.amax(of[0], over),
    fields=("over",),
    chooses=True,
    accumulator=Accumulator(
        fn="max",
        kind="amax",
        joins="max",
        repeated="",
        neutral=-inf,
        shown="keep the largest of {0} over {over}",
        symbol="max accum {over}",
    ),
    shown="max over {over} of {0}",
    symbol="max {over}",
    look="reduce",
    title="_max",
    stem="largest",
    turn=3,
    triton="tl.max",
)
