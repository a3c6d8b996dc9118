"""Kernels that read and write as fast as the memory lets them: where one is found, no other can be much faster."""

from __future__ import annotations

from collections.abc import Sequence

from mugraph.ir.program import TensorProgram
from mugraph.search.kernel_graphs.subprogram import bytes_of
from mugraph.search.schedules.cost import least_us
from mugraph.targets import Target
from mugraph.tune.measure import Measurer
from mugraph.tune.messages import InputSpec, Subject
from mugraph.tune.statistics import Summary
from mugraph.tune.tuner import Variant

LEAST = 1 << 26
"""Bytes; what moves fewer is measured in a moment, and its start counts."""
NEAR = 1.4
"""Times what its bytes take at the memory's bandwidth, as the best is expected to take at most."""
_COPY = Subject("copy", "def copied(x):\n    return x.clone()\n", "copied")


def is_near_memory(program: TensorProgram, variants: Sequence[Variant], target: Target) -> bool:
    """Is the best of the variants expected to be bound by what the program reads and writes?"""
    moved = _moved(program)
    best = min((one.candidate.estimate_us for one in variants), default=None)
    return best is not None and moved >= LEAST and best <= NEAR * least_us(moved, target)


def copy_us(program: TensorProgram, measurer: Measurer) -> float | None:
    """Microseconds of a copy that reads and writes as many bytes as the program, measured; None where it cannot be."""
    found = measurer.measure_kernel(_COPY, (InputSpec((_moved(program) // 8,), (1,), "f32"),), rounds=12)
    return found.median_us if isinstance(found, Summary) else None


def _moved(program: TensorProgram) -> int:
    return bytes_of((*program.tensors, *program.outputs.values()), program.sizes)
