"""What PyTorch takes for calls, as a value: it is added up over a region's search units."""

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

    @property
    def peers_us(self) -> Mapping[str, float]:
        return {"eager": self.eager_us, "torch.compile": self.compiled_us}

    def __add__(self, other: Baseline) -> Baseline:
        """Of calls one after the other."""
        return Baseline(self.eager_us + other.eager_us, self.compiled_us + other.compiled_us)


NOTHING = Baseline(0.0, 0.0)
