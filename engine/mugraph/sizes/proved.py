"""A proof for all sizes of a range: that the emitted text uses memory as it should."""

from __future__ import annotations

from mugraph.ir.kernel import KernelSource
from mugraph.ir.program import TensorProgram
from mugraph.sizes.table import steps_of
from mugraph.triton_text.ranges.check import Varying, check_ranges
from mugraph.verification.verdict import Verdict


def varying_of(program: TensorProgram) -> Varying:
    """Every dynamic axis is a multiple of one size of several, which is called as an axis that is no larger."""
    sizes: dict[str, tuple[int, int]] = {}
    axes: dict[str, tuple[str, int]] = {}
    beyond: dict[str, str] = {}
    for number, group in enumerate(program.varying_together):
        least, largest = steps_of(program, group)
        factors = {axis: program.sizes[axis] // largest for axis in group}
        other = "size" if number == 0 else f"size_{number}"
        name = next((axis for axis, factor in factors.items() if factor == 1), other)
        sizes[name] = (least, largest)
        for axis in group:
            if (by := _joined(program, axis)) and factors[axis] == 1:
                sizes[name] = (program.least[axis] - program.least[by], program.sizes[axis] - program.sizes[by])
                beyond[name] = by
                break
        axes |= {axis: (name, factor) for axis, factor in factors.items()}
    return Varying(sizes, axes, beyond)


def _joined(program: TensorProgram, axis: str) -> str:
    """The axis that counts what is joined along this one by itself; "" without one."""
    windows = ((tensor, window) for tensor in program.tensors for window in tensor.windows if window.by)
    return next((window.by for tensor, window in windows if tensor.dims[window.dim] == (axis,)), "")


def proved(program: TensorProgram, source: KernelSource) -> Verdict:
    """What is not proved is not offered."""
    varying = varying_of(program)
    found = check_ranges(program, source, varying)
    if not found.passed:
        sizes = ", ".join(f"{axis} = {least}..{program.sizes[axis]}" for axis, least in program.least.items())
        return Verdict(False, f"for {sizes} it is not proved right: {found.reason}")
    ends = {axis: (least, program.sizes[axis]) for axis, least in program.least.items()}
    return Verdict(True, proved_sizes=ends, proved_claims=found.claims)
