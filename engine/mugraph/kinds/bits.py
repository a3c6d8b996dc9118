"""Bits of a whole number, as of weights that are stored two to a byte. The first operand is whole and small enough for
float32 to hold it exactly: the rules that make these kinds see to it (ops/families/bits.py). The second one is a
constant. The texts compute with the same bits as PyTorch does; the check of a kernel's text tells them by their form.
"""

import numpy as np

from mugraph.kinds.kind import Kind, Role
from mugraph.kinds.opaque import Floats, Opaque


def _whole(value: Floats) -> "np.ndarray[tuple[int, ...], np.dtype[np.int64]]":
    return np.asarray(value).astype(np.int64)


def _and(a: Floats, b: Floats) -> Floats:
    return np.bitwise_and(_whole(a), _whole(b)).astype(np.float64)


def _shifted(a: Floats, b: Floats) -> Floats:
    return np.right_shift(_whole(a), np.clip(_whole(b), 0, 62)).astype(np.float64)


_INTEGERS = "{0}.to(torch.int64), {1}.to(torch.int64)"

BIT_AND = Kind(
    "bit_and",
    Role.ELEMENTWISE,
    2,
    opaque=Opaque(_and, (), reference=f"torch.bitwise_and({_INTEGERS}).to(torch.float64)"),
    shown="{0} & {1}",
    symbol="&",
    title="_bits",
    stem="bits",
    instructions=2,
    test_cost=4.0,
    triton="tl.cast(tl.cast({0}, tl.int32) & tl.cast({1}, tl.int32), tl.float32)",
    constant="mask",
)

SHIFT_RIGHT = Kind(
    "shift_right",
    Role.ELEMENTWISE,
    2,
    opaque=Opaque(_shifted, (), reference=f"torch.bitwise_right_shift({_INTEGERS}).to(torch.float64)"),
    shown="{0} >> {1}",
    symbol=">>",
    title="_shifted",
    stem="shifted",
    instructions=2,
    test_cost=4.0,
    triton="tl.cast(tl.cast({0}, tl.int32) >> tl.cast({1}, tl.int32), tl.float32)",
    constant="places",
)
