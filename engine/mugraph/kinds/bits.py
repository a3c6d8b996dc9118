"""Bits of a whole number, as of weights that are stored two to a byte. The first operand is whole and small enough for
float32 to hold it exactly: the rules that make this kind see to it (ops/families/bits.py). The second one is a
constant. The text computes with the same bits as PyTorch does; the check of a kernel's text tells it by its form.
Shifts are arithmetic on it (ops/algebra/bits.py).
"""

import numpy as np

from mugraph.kinds.kind import Kind, Role
from mugraph.kinds.opaque import Floats, Opaque


def _whole(value: Floats) -> "np.ndarray[tuple[int, ...], np.dtype[np.int64]]":
    return np.asarray(value).astype(np.int64)


def _and(a: Floats, b: Floats) -> Floats:
    return np.bitwise_and(_whole(a), _whole(b)).astype(np.float64)


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
    of_byte="{0} & {1}",
    constant="mask",
)
