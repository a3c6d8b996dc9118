"""Verdicts for whole μGraphs: the kernels of a kernel graph, run one after the other over finite fields.

For `mugraph verify --ugraph FILE`: graphs that came from elsewhere, with one or several kernels, each of which says
what it computes.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace

from mugraph.ir.block import BlockGraph, Schedule
from mugraph.ir.library import library_call
from mugraph.ir.mugraph import LibraryKernel, MuGraph
from mugraph.ir.program import TensorProgram
from mugraph.ir.spec import check_mugraph
from mugraph.verification.axis_names import with_program_axes
from mugraph.verification.borders import check_memory, check_sources
from mugraph.verification.evaluate import Malformed
from mugraph.verification.full_size import verify_full_size
from mugraph.verification.proof import prove
from mugraph.verification.sizes import grid_axes
from mugraph.verification.verdict import Proof, Verdict
from mugraph.verification.verifier import verify_topologies

PASSES = 8
"""How often a kernel may run through one of its loops."""


def verify_document(program: TensorProgram, graphs: Sequence[MuGraph], seed: int | None = None) -> list[Verdict]:
    """A verdict for each graph, in order. Inputs and outputs are matched with the program's by name, or by position
    where the names differ and the shapes agree. Never raises for a wrong graph."""
    return [verify_mugraph(program, graph, None if seed is None else seed + i) for i, graph in enumerate(graphs)]


def verify_mugraph(program: TensorProgram, graph: MuGraph, seed: int | None = None) -> Verdict:
    """A verdict in three steps: the graph keeps the rules of μGraphs (ir/spec) and the program's memory; it is right at
    scaled-down sizes with its own grid axes; it is right at its own sizes with its own schedule."""
    violations = check_mugraph(graph, passes=PASSES, for_codegen=False)
    if violations:
        more = f" (and {len(violations) - 1} more)" if len(violations) > 1 else ""
        return Verdict(False, f"{violations[0]}{more}")
    try:
        program = _named_as(program, graph)
        kernels = _kernels(graph)
        blocks = [block for block, _ in kernels]
        check_memory(program, blocks)
        check_sources(program, [*graph.tensors, *(tensor for block in blocks for tensor in block.tensors)])
        kernels = with_program_axes(program, kernels)
    except Malformed as error:
        return Verdict(False, str(error))
    cut = [(block, _cut_axes(block, schedule)) for block, schedule in kernels]
    verdict = verify_topologies(program, cut, seed, single=_single(kernels))
    if not verdict.passed:
        return verdict
    own = verify_full_size(program, kernels, seed)
    if not own.passed:
        return replace(verdict, passed=False, reason=own.reason, bound=None)
    return replace(verdict, indexing=own.indexing, proof=proof_of(program, kernels))


def proof_of(program: TensorProgram, kernels: Sequence[tuple[BlockGraph, Schedule]]) -> Proof:
    """Kernels that run one after the other, with the program's names for axes: proved at sizes that keep what each
    schedule cuts."""
    return prove(program, [(block, _cut_axes(block, schedule)) for block, schedule in kernels], _single(kernels))


def _kernels(graph: MuGraph) -> list[tuple[BlockGraph, Schedule]]:
    steps: list[tuple[BlockGraph, Schedule]] = []
    for kernel in graph.kernels:
        if isinstance(kernel, LibraryKernel):
            if kernel.block is None:
                raise Malformed(f"{kernel.name} is the library kernel {kernel.call}; what it computes is not said")
            call = library_call(kernel.block)
            if call is None or call.shown != kernel.call:
                raise Malformed(f"the library kernel {kernel.name} is not {kernel.call}, by what it is said to compute")
            steps.append((kernel.block, Schedule((), library=True)))
        else:
            steps.append((kernel.block, kernel.schedule))
    if not steps:
        raise Malformed("the graph has no kernels")
    return steps


def _cut_axes(block: BlockGraph, schedule: Schedule) -> tuple[str, ...]:
    """A grid axis with one block is whole and may be reduced, so it is cut only if every graph of this form allows
    it."""
    free = grid_axes(block)
    return tuple(axis for axis, tile in schedule.grid if tile < block.sizes[axis] or axis in free)


def _single(kernels: Sequence[tuple[BlockGraph, Schedule]]) -> set[str]:
    """Axes that are cut into single elements wherever they are cut."""
    tiles = [tile for _, schedule in kernels for tile in (*schedule.grid, *schedule.loops.items())]
    return {axis for axis, _ in tiles} - {axis for axis, elements in tiles if elements > 1}


def _named_as(program: TensorProgram, graph: MuGraph) -> TensorProgram:
    """The program with the graph's names for its tensors."""
    shapes = {tensor.name: tensor.shape(graph.sizes) for tensor in graph.tensors}
    names: dict[str, str] = {}
    for ours, theirs, some in (
        (program.tensors, graph.inputs, True),  # one that is not read, or another's memory, may be missing
        (tuple(program.outputs.values()), graph.outputs, False),
    ):
        known = {tensor.name for tensor in ours}
        if known == set(theirs) or (some and known > set(theirs)):
            continue
        if len(ours) != len(theirs):
            raise Malformed(f"the program has {len(ours)} tensors where the graph has {len(theirs)}")
        for tensor, name in zip(ours, theirs, strict=True):
            if tensor.shape(program.sizes) != shapes.get(name):
                raise Malformed(
                    f"{tensor.name} has shape {tensor.shape(program.sizes)}, the graph's {name} {shapes.get(name)}"
                )
            names[tensor.name] = name
    every = [names.get(t.name, t.name) for t in (*program.tensors, *program.outputs.values())]
    if len(set(every)) < len(every):
        raise Malformed(f"the graph's names of tensors are those of others in the program: {every}")
    return replace(
        program,
        tensors=tuple(replace(tensor, name=names.get(tensor.name, tensor.name)) for tensor in program.tensors),
        ops=tuple(replace(op, tensor=names.get(op.tensor, op.tensor)) for op in program.ops),
        outputs={
            value: replace(tensor, name=names.get(tensor.name, tensor.name))
            for value, tensor in program.outputs.items()
        },
    )
