"""Verdicts for whole μGraphs: the kernels of a kernel graph, run one after the other over finite fields.

For `mugraph verify --ugraph FILE`: graphs that came from elsewhere, with one or several kernels, each of which says
what it computes.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace

import numpy as np

from mugraph.ir.block import BlockGraph, Schedule
from mugraph.ir.library import library_call
from mugraph.ir.mugraph import LibraryKernel, MuGraph
from mugraph.ir.program import TensorProgram
from mugraph.verify.evaluate import Malformed
from mugraph.verify.sizes import grid_axes
from mugraph.verify.verdict import Verdict
from mugraph.verify.verifier import verify_schedules, verify_topologies

_SMALL = 1 << 22
"""Elements of all tensors together up to which a graph is tested at its own sizes as well."""


@dataclass(frozen=True)
class _Step:
    """grid: axes that are cut into blocks"""

    block: BlockGraph
    schedule: Schedule
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
    verdict = verify_topologies(program, [(step.block, step.grid) for step in steps], seed)
    if not verdict.passed or _elements(program, graph) > _SMALL:
        return verdict
    own = verify_schedules(program, [(step.block, step.schedule) for step in steps], seed)
    if not own.passed:
        return replace(verdict, passed=False, reason=f"{own.reason} (with the graph's own tiles)", bound=None)
    return verdict


def _steps(graph: MuGraph) -> list[_Step]:
    steps: list[_Step] = []
    for kernel in graph.kernels:
        if isinstance(kernel, LibraryKernel):
            if kernel.block is None:
                raise Malformed(f"{kernel.name} is the library kernel {kernel.call}; what it computes is not said")
            call = library_call(kernel.block)
            if call is None or call.shown != kernel.call:
                raise Malformed(f"the library kernel {kernel.name} is not {kernel.call}, by what it is said to compute")
            steps.append(_Step(kernel.block, Schedule((), library=True), ()))
            continue
        # A grid axis of one block is whole, and may be reduced; it is cut only where every graph of this form can be.
        block, free = kernel.block, grid_axes(kernel.block)
        cut = tuple(axis for axis, tile in kernel.schedule.grid if tile < block.sizes[axis] or axis in free)
        steps.append(_Step(block, kernel.schedule, cut))
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
