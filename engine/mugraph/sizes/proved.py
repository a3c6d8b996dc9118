"""A proof for all sizes of a range: that the emitted text uses memory as it should."""

from __future__ import annotations

from mugraph.ir.kernel import KernelSource
from mugraph.ir.program import TensorProgram
from mugraph.sizes.table import steps_of
from mugraph.triton_text.ranges.check import Varying, check_ranges
from mugraph.verification.verdict import Verdict


def varying_of(program: TensorProgram) -> Varying:
    """Every dynamic axis is a multiple of one size, which is called as an axis that is no larger."""
    least, largest = steps_of(program)
    factors = {axis: program.sizes[axis] // largest for axis in program.least}
    name = next((axis for axis, factor in factors.items() if factor == 1), "size")
    return Varying({name: (least, largest)}, {axis: (name, factor) for axis, factor in factors.items()})


def proved(program: TensorProgram, source: KernelSource) -> Verdict:
    """What is not proved is not offered."""
    varying = varying_of(program)
    found = check_ranges(program, source, varying)
    if not found.passed:
        sizes = ", ".join(f"{axis} = {least}..{program.sizes[axis]}" for axis, least in program.least.items())
        return Verdict(False, f"for {sizes} it is not proved right: {found.reason}")
    ends = {axis: (least, program.sizes[axis]) for axis, least in program.least.items()}
    return Verdict(True, proved_sizes=ends, proved_claims=found.claims)
