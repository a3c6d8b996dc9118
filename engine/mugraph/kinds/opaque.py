"""A function of single numbers of which nothing is known but that equal arguments give equal results."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

Floats = NDArray[np.float64]


@dataclass(frozen=True)
class Opaque:
    """What the passes ask of such a function besides what they ask of any kind.

    numbers: the function itself, on float64 arrays
    names:   PyTorch's, the usual one first, of functions in torch and of Tensor's methods: "atan2", "arctan2"
    """

    numbers: Callable[..., Floats]
    names: tuple[str, ...]

    @property
    def targets(self) -> tuple[str, ...]:
        """The calls that are the function (targets of ir.calls.Call), also those that write their first operand."""
        spelled = [one for name in self.names for one in (name, f"{name}_")]
        return tuple(f"{owner}.{name}" for owner in ("torch", "Tensor") for name in spelled)
