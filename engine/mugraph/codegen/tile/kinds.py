"""Operators that are in kernels only: forms for which Triton has a word, and what makes softmax and masks safe.

What writes a kernel asks them the same questions as the kinds of graphs (mugraph.kinds). The arithmetics of this room
(pads.py, masks.py, softmax.py) have primitives for those that they meet.
"""

from __future__ import annotations

from dataclasses import dataclass

from mugraph.kinds import Accumulator, Kind, Meaning
from mugraph.kinds.kind import no_meaning


@dataclass(frozen=True, eq=False, slots=True)
class TileKind:
    """The fields are those of a Kind."""

    name: str
    meaning: Meaning = no_meaning
    is_elementwise: bool = True
    is_leaf: bool = False
    of_places: bool = False
    reduces: bool = False
    adds: bool = False
    contracts: bool = False
    scans: bool = False
    chooses: bool = False
    commutes: bool = False
    is_exponential: bool = False
    hides: bool = False
    is_function: bool = False
    scaled_by: tuple[int, ...] = ()
    shifted_by: tuple[int, ...] = ()
    neutral: float | None = None
    absorbing: float | None = None
    accumulator: Accumulator | None = None
    triton: str = ""
    negated: str = ""
    inverted: str = ""
    stored: str = ""
    inside: str = ""
    constant: str = "offset"


AnyKind = Kind | TileKind

# a + -1 * b
SUB = TileKind("sub", lambda on, of, fn, over: on.sub(of[0], of[1]), shifted_by=(1, 0), triton="{0} - {1:product}")
# 1 / sqrt(a)
RSQRT = TileKind("rsqrt", lambda on, of, fn, over: on.rsqrt(of[0]), triton="tl.rsqrt({0})")
# -max(-a, -b)
MIN = TileKind(
    "min",
    lambda on, of, fn, over: on.minimum(of[0], of[1]),
    chooses=True,
    commutes=True,
    triton="tl.minimum({0}, {1}, propagate_nan=tl.PropagateNan.ALL)",
    constant="limit",
)
# inputs[0] where the mask inputs[1] is 1, else the node's value: 0, or -inf (softmax.py)
KEEP = TileKind("keep", lambda on, of, fn, over: on.keep(of[0]))
# 2 ** (value * inputs[0] - inputs[1]), inputs[1] a ROWMAX
EXP2 = TileKind("exp2", lambda on, of, fn, over: on.exp2(of[0]))
# 2 ** a
POWER = TileKind("power", lambda on, of, fn, over: on.exp(of[0]), triton="tl.exp2({0})")
# the running maximum of value * inputs[0] over `over`, through the iterations of `loop` if any
ROWMAX = TileKind("rowmax", is_elementwise=False)
