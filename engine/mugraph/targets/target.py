"""A device to generate for, as figures."""

from __future__ import annotations

from dataclasses import dataclass


@dataclass(frozen=True, slots=True)
class Target:
    """A device to generate for.

    name:        as --target takes it
    capability:  compute capability * 10 (90 for 9.0); 0 for the CPU interpreter
    processors:  streaming multiprocessors
    shared:      bytes of shared memory one block may use
    bandwidth:   device memory, bytes per microsecond
    flops:       dense 16-bit tensor-core operations per microsecond
    float8:      how many times as many of float8 numbers; 0 where the tensor cores take none
    l2:          bytes of second-level cache
    title:       in a sentence, "a B200"; "" where the name does
    figures_of:  name of the target that has these figures; "" where they are its own
    """

    name: str
    capability: int
    processors: int
    shared: int
    bandwidth: float
    flops: float
    l2: int = 50 << 20
    title: str = ""
    figures_of: str = ""
    float8: float = 0.0

    @property
    def is_architecture(self) -> bool:
        """It stands for all devices of its compute capability."""
        return self.name.startswith("sm_")

    @property
    def launches_early(self) -> bool:
        """Can a kernel start while the one before it ends? (Programmatic dependent launch: compute capability 9.0.)"""
        return self.capability >= 90
