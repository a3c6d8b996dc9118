"""Kernels that are launched up to a size in place of those of a range: their program, and where they end."""

from __future__ import annotations

from mugraph.ir.kernel import KernelSource, UpTo
from mugraph.ir.program import TensorProgram
from mugraph.ir.transforms.resizing import resize
from mugraph.sizes.table import sizes_at, steps_of


def program_up_to(program: TensorProgram, step: int) -> TensorProgram | None:
    """The program with a range that ends at a step. None where other sizes would have to end earlier with it, as where
    a mask wants no fewer keys than queries: up to the step, those may be larger."""
    sizes = sizes_at(program, step)
    others = (axis for group in program.varying_together[1:] for axis in group)
    if any(sizes[axis] != program.sizes[axis] for axis in others):
        return None
    return resize(program, sizes, program.least.keys())


def program_up_to_size(program: TensorProgram, axis: str, largest: int) -> TensorProgram | None:
    """The same, up to a size of an axis. None also where this is no step of the size that matters most."""
    least, end = steps_of(program)
    if axis not in program.leading:
        return None
    step, rest = divmod(largest * end, program.sizes[axis])
    return program_up_to(program, step) if not rest and least <= step < end else None


def last_step(program: TensorProgram, one: UpTo) -> int:
    """The last step at which the kernels are launched."""
    _, end = steps_of(program)
    return one.largest * end // program.sizes[one.axis]


def up_to_name(name: str, largest: int) -> str:
    """What kernels up to a size are called, that are launched in place of those called `name`."""
    return f"{name}_to_{largest}"


def border_steps(program: TensorProgram, source: KernelSource) -> list[int]:
    """The steps on both sides of where other kernels are launched, smallest first."""
    _, largest = steps_of(program)
    ends = [last_step(program, one) for one in source.smaller]
    return sorted({step for end in ends for step in (end, end + 1) if 1 <= step <= largest})
