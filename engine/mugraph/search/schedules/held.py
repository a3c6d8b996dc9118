"""Whether a thread block can hold what any kernel of a program has to hold at once, told without a search.

An axis that is reduced, and that an output has which is computed from the result, as a row of a softmax or of a norm,
is never looped over (mugraph.search.run.loop_sets): all of it is in one block. Where that is more than the registers of
the largest block, the program needs several kernels, and a search for one is in vain.
"""

from __future__ import annotations

from math import prod

from mugraph.ir.program import TensorProgram
from mugraph.search.schedules.cost import MAX_REGISTERS

_THREADS = 32 * 8
"""Of the largest block that schedules have (mugraph.search.schedules.sizes.ScheduleLimits)."""


def is_too_large_to_hold(program: TensorProgram) -> bool:
    """Is there no kernel for it, whatever its tiles are? False says nothing."""
    return any(_elements_held(program, value) > MAX_REGISTERS * _THREADS for value in program.outputs)


def _elements_held(program: TensorProgram, output: str) -> int:
    """Of the largest value on the way to an output, at least, that one block holds."""
    needed = {output}
    for op in reversed(program.ops):
        if op.name in needed:
            needed.update(op.inputs)
    ops = [op for op in program.compute_ops if op.name in needed]
    held = {axis for op in ops for axis in op.over}.intersection(program.op(output).axes)
    return max((prod(program.sizes[axis] for axis in held.intersection(op.axes)) for op in ops), default=1)
