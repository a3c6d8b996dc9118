"""What is left of a value in eight bits: the nearest number that float8_e4m3fn or float8_e5m2 has, of two that are as
near the even one.

Beyond the largest number of the type these kinds are as IEEE 754 has it: infinity, or NaN of the type that has no
infinity. PyTorch's own conversions to float8_e4m3fn are so up to 2.12; later ones give the largest number, which is a
clamp before (ops/algebra/conversions.py). GPUs convert so too, whatever is asked, so that the text says where it is
NaN; a value that is an infinity of eight bits it cannot make, so that a program has to clamp what becomes float8_e5m2.
"""

from collections.abc import Callable

import numpy as np

from mugraph.kinds.kind import Kind, Role
from mugraph.kinds.opaque import Floats, Opaque


def _nearest(digits: int, least: int, largest: float, beyond: float) -> Callable[[Floats], Floats]:
    """To so many binary digits, 2^least at the smallest; above the largest number it is `beyond`."""

    def nearest(value: Floats) -> Floats:
        x = np.asarray(value, np.float64)
        _, exponent = np.frexp(x)
        step = np.ldexp(1.0, np.maximum(exponent - digits, least))
        found = np.round(x / step) * step
        return np.where(np.abs(found) > largest, np.copysign(beyond, x), found)

    return nearest


def _reference(digits: int, least: int, largest: float, beyond: str) -> str:
    """The same in torch, which may be on a GPU."""
    step = f"torch.ldexp(torch.ones_like({{0}}), (torch.frexp({{0}}).exponent - {digits}).clamp_min({least}))"
    found = f"torch.round({{0}} / {step}) * {step}"
    other = f"torch.copysign(torch.full_like({{0}}, float('{beyond}')), {{0}})"
    return f"torch.where(({{0}}).abs() > {largest}, {other}, {found})"


def _halfway(digits: int, largest: float) -> float:
    """Up to it what is larger than the largest number is rounded down to it."""
    step = float(np.ldexp(1.0, np.frexp(largest)[1] - digits))
    halfway = largest + step / 2
    return float(np.nextafter(halfway, 0.0)) if largest / step % 2 else halfway


def _rounding(stored: str, digits: int, least: int, largest: float, beyond: str) -> Opaque:
    return Opaque(
        _nearest(digits, least, largest, float(beyond)),
        (),
        reference=_reference(digits, least, _halfway(digits, largest), beyond),
        jumps=True,
        stored=stored,
        has_nan_beyond=beyond == "nan",
    )


E4M3 = Kind(
    "e4m3",
    Role.ELEMENTWISE,
    1,
    opaque=_rounding("f8e4m3", digits=4, least=-9, largest=448.0, beyond="nan"),
    shown="e4m3({0})",
    symbol="e4m3",
    title="_codes",
    stem="codes",
    instructions=3,
    test_cost=4.0,
    triton='tl.cast(tl.where(tl.abs({0}) <= 464.0, {0}, float("nan")), tl.float8e4nv)',
    inside="tl.cast({0}, tl.float8e4nv)",
)

E5M2 = Kind(
    "e5m2",
    Role.ELEMENTWISE,
    1,
    opaque=_rounding("f8e5m2", digits=3, least=-16, largest=57344.0, beyond="inf"),
    shown="e5m2({0})",
    symbol="e5m2",
    title="_codes",
    stem="codes",
    instructions=2,
    test_cost=4.0,
    triton="tl.cast({0}, tl.float8e5)",
)
