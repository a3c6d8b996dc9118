"""The Triton text of functions, computed in float32 with numpy in Triton's place: how exact is it?"""

from __future__ import annotations

from types import SimpleNamespace

import numpy as np
from mugraph.ops.functions.unary import UNARY
from numpy.typing import NDArray

ONE = np.float32(1)
TL = SimpleNamespace(
    where=lambda condition, a, b: np.where(condition, np.float32(a), np.float32(b)),
    abs=np.abs,
    sigmoid=lambda x: ONE / (ONE + np.exp(-x)),
)


def computed(fn: str, x: NDArray[np.float32]) -> NDArray[np.float32]:
    with np.errstate(all="ignore"):
        out = eval(UNARY[fn].triton.format(x="x"), {"tl": TL, "x": x})
    assert out.dtype == np.float32
    return out


def test_tanh_keeps_its_digits_near_zero() -> None:
    """Within two units in the last place at every magnitude; PyTorch's own is within one."""
    tiny, rest = np.logspace(-30, 0, 100_000), np.linspace(0, 12, 300_000)
    x = np.concatenate([-tiny, tiny, -rest, rest]).astype(np.float32)
    exact = np.tanh(x.astype(np.float64))
    unit = np.spacing(np.abs(exact).astype(np.float32)).astype(np.float64)
    assert np.max(np.abs(computed("tanh", x) - exact) / unit) < 2.0


def test_tanh_of_what_is_no_ordinary_number() -> None:
    x = np.array([np.inf, -np.inf, np.nan, 0.0, -0.0], dtype=np.float32)
    np.testing.assert_array_equal(computed("tanh", x), np.array([1.0, -1.0, np.nan, 0.0, -0.0], dtype=np.float32))
    assert np.signbit(computed("tanh", x)[-1])
