"""What PyTorch takes for calls, and generated code beside it, as values."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass


@dataclass(frozen=True, slots=True)
class Baseline:
    """Microseconds on the device."""

    eager_us: float
    compiled_us: float

    @property
    def best_us(self) -> float:
        return min(self.eager_us, self.compiled_us)


@dataclass(frozen=True, slots=True)
class Beside:
    """Generated code beside PyTorch's own, in microseconds on the device.

    gain, best_gain: over the code as it runs, and over the best of the peers
    """

    us: float
    code_us: float
    gain: float
    peers_us: Mapping[str, float]
    best_peer: str
    best_gain: float
