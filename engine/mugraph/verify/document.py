"""Verdicts for whole μGraphs: the kernels of a kernel graph, run one after the other over finite fields.

For `mugraph verify --ugraph FILE`: graphs that came from elsewhere, with one or several graph-defined kernels.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace

import numpy as np

from mugraph.ir.block import BlockGraph, Schedule
from mugraph.ir.mugraph import GraphKernel, LibraryKernel, MuGraph
from mugraph.ir.ops import Kind
from mugraph.ir.program import TensorProgram
from mugraph.verify.evaluate import Malformed
from mugraph.verify.execute import execute_block
from mugraph.verify.field import FieldArithmetic, FieldValue
from mugraph.verify.sizes import assignments, grid_axes, resize, resize_block
from mugraph.verify.verdict import Verdict
from mugraph.verify.verifier import REPETITIONS, Rejected, compare_with, laxness, verify_topology

_SMALL = 1 << 22
"""Elements of all tensors together up to which a graph is tested at its own sizes as well."""


@dataclass(frozen=True)
class _Step:
    kernel: GraphKernel
    grid: tuple[str, ...]


def verify_document(program: TensorProgram, graphs: Sequence[MuGraph], seed: int | None = None) -> list[Verdict]:
    """A verdict for each graph, in order. Inputs and outputs are matched with the program's by name, or by position
    where the names differ and the shapes agree. Never raises for a wrong graph."""
    return [verify_mugraph(program, graph, None if seed is None else seed + i) for i, graph in enumerate(graphs)]


def verify_mugraph(program: TensorProgram, graph: MuGraph, seed: int | None = None) -> Verdict:
    """Scaled-down sizes with the graph's own grid axes, then its own schedule at its own sizes if they are small."""
    try:
        program = _named_as(program, graph)
        steps = _steps(graph)
    except Malformed as error:
        return Verdict(False, str(error))
    if len(steps) == 1:
        step = steps[0]
        verdict = verify_topology(program, step.kernel.block, seed, step.grid)
    else:
        verdict = _verify_steps(program, steps, seed)
    if not verdict.passed or _elements(program, graph) > _SMALL:
        return verdict
    own = _at_own_sizes(program, steps, np.random.default_rng(np.random.SeedSequence(seed)))
    if own is not None:
        return replace(verdict, passed=False, reason=f"{own.reason} (with the graph's own tiles)", bound=None)
    return verdict


def execute_kernels(
    kernels: Sequence[tuple[BlockGraph, Schedule]], inputs: Mapping[str, FieldValue], field: FieldArithmetic
) -> dict[str, FieldValue]:
    """Tensor name -> value, for the inputs and for what each kernel stores. Raises Malformed."""
    memory = dict(inputs)
    for block, schedule in kernels:
        results = execute_block(block, schedule, memory, field)
        again = sorted(results.keys() & memory.keys())
        if again:
            raise Malformed(f"{block.name} writes {', '.join(again)}, which exists already")
        memory.update(results)
    return memory


def _verify_steps(program: TensorProgram, steps: Sequence[_Step], seed: int | None) -> Verdict:
    rng = np.random.default_rng(np.random.SeedSequence(seed))
    blocks = [step.kernel.block for step in steps]
    lax, why = laxness(program.ops, *(block.ops for block in blocks))
    tested: list[Mapping[str, int]] = []
    repetitions = 0
    try:
        for assignment in assignments(program, [(step.kernel.block, step.grid) for step in steps]):
            tested.append(dict(assignment.sizes))
            repetitions += REPETITIONS
            kernels = [
                (resize_block(step.kernel.block, assignment.sizes), assignment.schedule(step.kernel.block, step.grid))
                for step in steps
            ]
            rejected = _compare(resize(program, assignment.sizes), kernels, rng, REPETITIONS)
            if rejected is not None:
                return Verdict(False, rejected.reason, lax, repetitions, tuple(tested))
    except Malformed as error:
        return Verdict(False, str(error), lax, repetitions, tuple(tested))
    note = why or "no bound is worked out over several kernels"
    return Verdict(True, None, lax, repetitions, tuple(tested), bound_note=note)


def _at_own_sizes(program: TensorProgram, steps: Sequence[_Step], rng: np.random.Generator) -> Rejected | None:
    try:
        return _compare(program, [(step.kernel.block, step.kernel.schedule) for step in steps], rng, 1)
    except Malformed as error:
        return Rejected(str(error))


def _compare(
    program: TensorProgram,
    kernels: Sequence[tuple[BlockGraph, Schedule]],
    rng: np.random.Generator,
    repetitions: int,
) -> Rejected | None:
    with_q = any(op.kind is Kind.EXP for ops in (program.ops, *(block.ops for block, _ in kernels)) for op in ops)
    return compare_with(
        program, lambda inputs, field: execute_kernels(kernels, inputs, field), with_q, rng, repetitions
    )


def _steps(graph: MuGraph) -> list[_Step]:
    steps: list[_Step] = []
    for kernel in graph.kernels:
        if isinstance(kernel, LibraryKernel):
            raise Malformed(f"{kernel.name} is the library kernel {kernel.call}; only graph-defined ones are verified")
        # A grid axis of one block is whole, and may be reduced; it is cut only where every graph of this form can be.
        block, free = kernel.block, grid_axes(kernel.block)
        cut = tuple(axis for axis, tile in kernel.schedule.grid if tile < block.sizes[axis] or axis in free)
        steps.append(_Step(kernel, cut))
    if not steps:
        raise Malformed("the graph has no kernels")
    return steps


def _named_as(program: TensorProgram, graph: MuGraph) -> TensorProgram:
    """The program with its tensors called what the graph calls them."""
    shapes = {tensor.name: tensor.shape(graph.sizes) for tensor in graph.tensors}
    names: dict[str, str] = {}
    for ours, theirs in (
        (program.tensors, graph.inputs),
        (tuple(program.outputs.values()), graph.outputs),
    ):
        if {tensor.name for tensor in ours} >= set(theirs) and len(theirs) <= len(ours):
            continue
        if len(ours) != len(theirs):
            raise Malformed(f"the program has {len(ours)} tensors where the graph has {len(theirs)}")
        for tensor, name in zip(ours, theirs, strict=True):
            if tensor.shape(program.sizes) != shapes.get(name):
                raise Malformed(
                    f"{tensor.name} has shape {tensor.shape(program.sizes)}, the graph's {name} {shapes.get(name)}"
                )
            names[tensor.name] = name
    return replace(
        program,
        tensors=tuple(replace(tensor, name=names.get(tensor.name, tensor.name)) for tensor in program.tensors),
        ops=tuple(replace(op, tensor=names.get(op.tensor, op.tensor)) for op in program.ops),
        outputs={
            value: replace(tensor, name=names.get(tensor.name, tensor.name))
            for value, tensor in program.outputs.items()
        },
    )


def _elements(program: TensorProgram, graph: MuGraph) -> int:
    ours = sum(int(np.prod(tensor.shape(program.sizes))) for tensor in program.tensors)
    return ours + sum(int(np.prod(tensor.shape(graph.sizes))) for tensor in graph.tensors)
