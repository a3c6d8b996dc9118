"""The check of a kernel's text: it is evaluated over the finite fields, at the sizes it will run at."""

from __future__ import annotations

from collections.abc import Callable, Collection, Mapping, Sequence
from dataclasses import replace
from math import inf, prod

from mugraph.codegen.lower import lower_kernels
from mugraph.ir.block import BlockGraph, Schedule
from mugraph.ir.kernel import KernelSource, Rejected
from mugraph.ir.program import TensorProgram
from mugraph.sizes.proved import proved
from mugraph.sizes.smaller import smaller
from mugraph.sizes.table import at_sizes, sizes_at, steps_of, tested_sizes, tested_steps, words_of
from mugraph.sizes.up_to import border_steps, program_up_to_size
from mugraph.triton_text.check import MOST_READ, TOO_MUCH, TextVerdict, check_text
from mugraph.verification.verdict import Verdict

MOST = 1 << 21
"""Elements that one element of an output is computed from, up to which the text is run at the program's own sizes."""
Kernels = Sequence[tuple[BlockGraph, Schedule]]
Writer = Callable[[Kernels, Collection[str], TensorProgram], KernelSource]
"""Of kernels, the tensors that they return, and the program."""


def written(kernels: Kernels, outputs: Collection[str], program: TensorProgram) -> KernelSource:
    return lower_kernels(kernels, outputs=outputs, program=program)


def text_checked(program: TensorProgram, source: KernelSource, kernels: Kernels, write: Writer = written) -> Verdict:
    """What an element, or a block, needs too much of has its text looked at for the use of memory, and the text of the
    same kernels run at smaller sizes.

    kernels: those that the source was written from
    write:   what wrote it

    With a range of sizes the check is made at the sizes of the float tests, and at each size after which the
    launcher takes another schedule, or other kernels, of which it is also made at the next size; that the use of memory
    is right at all others is proved."""
    if not program.least and _needed(program) > MOST:
        return _checked_smaller(program, _checked(program, source, "an element of it takes millions of others"),
                                kernels, write)  # fmt: skip
    said = ""
    points = _checked_sizes(program, source)
    for sizes in points:
        found = _checked(at_sizes(program, [], sizes)[0], source, most=inf if program.least else MOST_READ)
        if found.check == TOO_MUCH:
            return _checked_smaller(program, found, kernels, write)
        if not found.passed:
            words = words_of(program, sizes)
            return Verdict(False, f"{found.reason}{f', with {words}' if words else ''}")
        said = found.said
    if len(points) > 1:
        said += f"; so at {len(points) - 1} smaller sizes"
    return replace(proved(program, source), text=said) if program.least else Verdict(True, text=said)


def others_checked(program: TensorProgram, source: KernelSource, *, whole: bool = False) -> Verdict:
    """The same of a text that launches other kernels up to some sizes, and was checked without them: it is run at sizes
    of these and beside them, and proved for all sizes. whole: it was not checked without them, so that it is also run
    at the sizes above those."""
    every = [sizes_at(program, step) for step in border_steps(program, source)]
    launched_from = 1
    for row in source.smaller:
        own = program_up_to_size(program, row.axis, row.largest)
        inside = _checked_sizes(own, row.source) if own is not None else []
        every += [sizes for sizes in inside if sizes[row.axis] >= launched_from]
        launched_from = row.largest + 1
    if whole:
        axis = source.smaller[-1].axis
        every += [sizes for sizes in _checked_sizes(program, source) if sizes[axis] >= launched_from]
    points = {tuple(sizes[axis] for axis in program.sizes): sizes for sizes in every}
    said = ""
    for sizes in points.values():
        found = _checked(at_sizes(program, [], sizes)[0], source)
        if not found.passed:
            return Verdict(False, f"{found.reason}, with {words_of(program, sizes)}")
        said = found.said
    where = f"{len(points) - 1} smaller sizes" if whole else f"{len(points)} sizes, up to where others are launched"
    return replace(proved(program, source), text=f"{said}; so at {where}")


def _needed(program: TensorProgram) -> int:
    """Elements of inputs that one element of an output is computed from, at most."""
    reduced = {axis for op in program.ops for axis in op.over}
    return sum(prod(program.sizes[axis] for axis in tensor.axes if axis in reduced) for tensor in program.tensors)


def _checked_smaller(program: TensorProgram, memory: TextVerdict, kernels: Kernels, write: Writer) -> Verdict:
    """memory: of the text at the program's own sizes"""
    if not memory.passed:
        return Verdict(False, memory.reason)
    small, fewer = smaller(program, kernels)
    names = [tensor.name for tensor in small.outputs.values()]
    try:
        less = write(fewer, names, small)
    except Rejected as error:
        return Verdict(False, f"at smaller sizes: {error}")
    found = _checked(small, less)
    at = ", ".join(f"{axis} = {n}" for axis, n in small.sizes.items())
    return Verdict(found.passed, found.reason, text=f"{memory.said}; written for {at}, {found.said}")


def _checked(program: TensorProgram, source: KernelSource, left: str = "", most: float = inf) -> TextVerdict:
    inputs, outputs = ([tensor.name for tensor in tensors] for tensors in (source.inputs, source.outputs))
    text, launcher = source.standalone(), f"launch_{source.name}"
    return check_text(program, text, launcher, inputs, outputs, memory_alone=True, left=left, most=most)


def _checked_sizes(program: TensorProgram, source: KernelSource) -> list[Mapping[str, int]]:
    """Sizes at which the text is run, the largest last."""
    every = [*tested_sizes(program), *(sizes_at(program, step) for step in checked_steps(program, source))]
    found = {tuple(sizes[axis] for axis in program.sizes): sizes for sizes in every}
    largest = found.pop(tuple(program.sizes.values()))
    return [*found.values(), largest]


def checked_steps(program: TensorProgram, source: KernelSource) -> list[int]:
    """Steps at which the text is run, the largest one last."""
    _, largest = steps_of(program)
    found = {*tested_steps(program), *border_steps(program, source)}
    for part in source.every:
        if part.by in program.leading:
            found |= {row.largest * largest // program.sizes[part.by] for row in part.launches}
    return sorted(step for step in found if 1 <= step <= largest)
