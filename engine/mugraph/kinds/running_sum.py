"""Running sums along one axis: each element is added to all that stand before it, or to all that stand after it.

They are kinds of their own and no products with a triangle of ones, though that is what they are: a kernel then reads
its row once, adds n numbers instead of n squared, and carries the sum from tile to tile.
"""

from collections.abc import Sequence
from typing import Any

from mugraph.kinds.kind import Kind, Role
from mugraph.kinds.naming import Term, after


def _forwards(on: Any, of: Sequence[Any], fn: str, over: Any) -> Any:
    return on.running(of[0], over, False)


def _backwards(on: Any, of: Sequence[Any], fn: str, over: Any) -> Any:
    return on.running(of[0], over, True)


def _title(of: Term) -> str:
    return after(of.operands[0].name, "running")


# The element itself is in its sum; an exclusive sum is that of elements one place further (ops/families/scan.py).
RUNNING_SUM = Kind(
    "running_sum",
    Role.SCANNING,
    1,
    meaning=_forwards,
    fields=("over",),
    shown="running sum along {over} of {0}",
    symbol="running Σ {over}",
    look="reduce",
    title=_title,
    stem="running",
    turn=4,
    triton="tl.cumsum",
)

# From the end on: what reversing, a running sum and reversing again make.
RUNNING_SUM_BACK = Kind(
    "running_sum_back",
    Role.SCANNING,
    1,
    meaning=_backwards,
    fields=("over",),
    backwards=True,
    shown="running sum along {over}, from its end, of {0}",
    symbol="running Σ {over} from the end",
    look="reduce",
    title=_title,
    stem="running",
    turn=4,
    triton="tl.cumsum",
)
