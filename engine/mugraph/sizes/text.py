"""The check of a kernel's text: it is evaluated over the finite fields, at the sizes it will run at."""

from __future__ import annotations

from mugraph.ir.kernel import KernelSource
from mugraph.ir.program import TensorProgram
from mugraph.sizes.table import at_step, sizes_at, steps_of, tested_steps
from mugraph.triton_text.check import check_text
from mugraph.verify.verdict import Verdict


def text_checked(program: TensorProgram, source: KernelSource) -> Verdict:
    """With a range of sizes the check is made at the sizes of the float tests, and at each size after which the
    launcher takes another schedule."""
    said = ""
    steps = _steps(program, source)
    text = source.standalone()
    inputs, outputs = ([tensor.name for tensor in tensors] for tensors in (source.inputs, source.outputs))
    for step in steps:
        small = at_step(program, [], step)[0] if program.least else program
        found = check_text(small, text, f"launch_{source.name}", inputs, outputs)
        sizes = ", ".join(f"{axis} = {n}" for axis, n in sizes_at(program, step).items() if axis in program.least)
        if not found.passed:
            return Verdict(False, f"{found.reason}{f', with {sizes}' if sizes else ''}")
        said = found.said
    if len(steps) > 1:
        said += f"; so at {len(steps) - 1} smaller sizes"
    return Verdict(True, text=said)


def _steps(program: TensorProgram, source: KernelSource) -> list[int]:
    """The largest one last."""
    _, largest = steps_of(program)
    found = set(tested_steps(program))
    for part in source.kernels:
        first = next((axis for axis in part.sizes if axis in program.least), None)
        if first is not None:
            found |= {row.largest * largest // program.sizes[first] for row in part.launches}
    return sorted(step for step in found if 1 <= step <= largest)
