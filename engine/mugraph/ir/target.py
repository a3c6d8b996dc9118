"""Device models: the figures that schedules are filtered and estimated by. Sources: NVIDIA's data sheets; H200 copy
bandwidth and launch cost as measured (README, "Measured")."""

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
    launch_us:   the least time one kernel takes inside a CUDA graph
    l2:          bytes of second-level cache
    """

    name: str
    capability: int
    processors: int
    shared: int
    bandwidth: float
    flops: float
    launch_us: float = 2.4
    l2: int = 50 << 20


TARGETS: dict[str, Target] = {
    t.name: t
    for t in (
        Target("a100", 80, 108, 163_840 + 3_072, 1.9e6, 312e6, l2=40 << 20),
        Target("sm_80", 80, 108, 163_840 + 3_072, 1.9e6, 312e6, l2=40 << 20),
        Target("h100", 90, 132, 232_448, 3.0e6, 800e6),
        Target("h200", 90, 132, 232_448, 4.26e6, 790e6, l2=60 << 20),
        Target("sm_90", 90, 132, 232_448, 3.0e6, 800e6),
        # No GPU: kernels run in Triton's interpreter, and estimates are made for an H100.
        Target("cpu", 0, 132, 232_448, 3.0e6, 800e6),
    )
}
