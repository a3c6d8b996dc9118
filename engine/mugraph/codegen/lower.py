"""A block graph and a schedule become one Triton kernel: pure text generation, without torch or triton.

The steps, each in its own file of `mugraph.codegen.tile`: axes → nodes → dimensions → order → safe softmax (in this
order in tiled.py) → emission → the function.
"""

from __future__ import annotations

from collections.abc import Collection, Mapping, Sequence
from dataclasses import replace

from mugraph.codegen.dynamic import check_dynamic, grid_terms
from mugraph.codegen.launcher import borders, launcher_text
from mugraph.codegen.tile.constants import Constants
from mugraph.codegen.tile.emit import Emitter
from mugraph.codegen.tile.function import jit_function
from mugraph.codegen.tile.index import Indices, grid_of, kernel_names
from mugraph.codegen.tile.meeting import ALONE, Meeting
from mugraph.codegen.tile.shared import check_shared, shared_estimate
from mugraph.codegen.tile.text import Item, Printer, prune
from mugraph.codegen.tile.tiled import tile_graph
from mugraph.ir.block import TF32, BlockGraph, Schedule
from mugraph.ir.eviction import evicts_first
from mugraph.ir.kernel import KernelSource, Launch, Rejected, Unfinished
from mugraph.ir.library import library_call
from mugraph.ir.parts import parts_of, ragged_parts, undivided
from mugraph.ir.program import TensorProgram
from mugraph.ir.tensors import contiguous_strides
from mugraph.search.topologies.softmax import is_shift_invariant
from mugraph.targets import Target


def lower_kernels(
    kernels: Sequence[tuple[BlockGraph, Schedule]],
    *,
    target: Target | None = None,
    outputs: Collection[str] = (),
    program: TensorProgram | None = None,
    meetings: Mapping[str, Meeting] | None = None,
) -> KernelSource:
    """Kernels that run one after the other, as one source that is named after the first and launches all.

    Each may hand sums to a later one that it leaves unfinished. Raises Rejected as `lower` does.

    outputs: tensors that are returned though a later kernel reads them
    program: what they compute; the sizes of its dynamic axes (`least`) are arguments of the launch
    meetings: of kernels that will be one launch, by their names
    """
    for block, schedule in kernels:
        check_dynamic(block, program, schedule)
    least: Mapping[str, int] = program.least if program is not None else {}
    parts: list[KernelSource] = []
    handed = Unfinished()
    for number, (block, schedule) in enumerate(kernels):
        if schedule.library:
            parts.append(_library(block, handed, least))
            continue
        cut = parts_of(block, program) if program is not None and schedule.part else None
        ragged = ragged_parts(program, block, schedule) if program is not None else None
        written, tiles, divided = block, schedule, dict[str, str]()
        if cut is not None:
            written, tiles = undivided(block, schedule, cut)
            divided, least = {cut.axis: cut.split}, {**least, cut.split: 1}
        elif ragged is not None and program is not None:
            written, tiles = undivided(block, schedule, ragged, program.sizes[ragged.axis])
            divided = {ragged.axis: ragged.split}
        elif schedule.part:
            raise Rejected(f"{block.name} has parts of {schedule.part} elements that do not cover an axis.")
        read_later = {tensor.name for other, _ in kernels[number + 1 :] for tensor in other.inputs}
        parts.append(
            lower(
                written,
                tiles,
                target=target,
                finishes=handed,
                unfinished=not read_later.isdisjoint(tensor.name for tensor in block.outputs),
                least=least,
                divided=divided,
                leading=program.leading if program is not None else (),
                may_overflow=program is not None and not is_shift_invariant(program.ops),
                meeting=(meetings or {}).get(block.name, ALONE),
            )
        )
        own = tuple(replace(launch, schedule=schedule) for launch in parts[-1].launches)
        parts[-1] = replace(parts[-1], launches=own)
        if any(left in outputs or left not in read_later for left in parts[-1].unfinished.degrees):
            raise Rejected(f"{block.name} leaves an output of the program relative to a maximum.")
        handed = _both(handed, parts[-1].unfinished)
    if len(parts) == 1:
        return parts[0]
    inputs, stored = borders(parts, outputs)
    sizes = {axis: size for part in parts for axis, size in part.sizes.items()}
    counted = {split for part in parts for split in part.divided.values()}
    dynamic = {axis: size for part in parts for axis, size in part.least.items() if axis not in counted}
    jit = "\n\n\n".join(part.jit for part in parts if part.jit)
    launcher = launcher_text(parts[0].name, parts, outputs)
    whole = replace(parts[0], jit=jit, inputs=inputs, outputs=stored, sizes=sizes, launcher=launcher, least=dynamic)
    return replace(whole, parts=tuple(parts), takes_tf32=any(part.takes_tf32 for part in parts))


def _library(block: BlockGraph, handed: Unfinished, least: Mapping[str, int]) -> KernelSource:
    """A pre-defined kernel: a PyTorch call in the launcher. Raises Rejected where none computes the block graph."""
    call = library_call(block)
    if call is None:
        raise Rejected(f"no library call computes {block.name} without a copy.")
    for tensor in block.inputs:
        if handed.degrees.get(tensor.name):
            raise Rejected(f"{tensor.name} is relative to a maximum, of which {call.function} knows nothing.")
    if least and not call.is_sizeless:
        raise Rejected(f"{call.function} would see {block.name}'s tensors in a shape that varies.")
    source = KernelSource(
        name=block.name,
        jit="",
        pointers=(),
        constexprs={},
        grid=(1, 1, 1),
        inputs=block.inputs,
        outputs=block.outputs,
        sizes=block.sizes,
        num_warps=1,
        num_stages=1,
        launcher="",
        library=call,
        least={axis: size for axis, size in least.items() if axis in block.sizes},
    )
    return replace(source, launcher=launcher_text(block.name, [source]))


def lower(
    block: BlockGraph,
    schedule: Schedule,
    *,
    target: Target | None = None,
    finishes: Unfinished | None = None,
    unfinished: bool = False,
    least: Mapping[str, int] | None = None,
    divided: Mapping[str, str] | None = None,
    leading: Collection[str] = (),
    may_overflow: bool = False,
    meeting: Meeting = ALONE,
) -> KernelSource:
    """The kernel of a candidate. Raises Rejected, with one sentence, for what the rules cannot lower, and for what
    needs more shared memory than `target` has (an estimate).

    finishes:   of the kernels before it, whose sums it loads
    unfinished: another kernel finishes its outputs, so they may be relative to maxima, which it stores besides
    least:      dynamic axes -> their least size: their sizes are arguments, at most what the block graph has
    divided:    an axis whose parts are spread over the grid, as long as the schedule says -> the axis that says which
                part
    leading:    those of them by which a launch is chosen, before the others
    may_overflow: the program has exponentials that are no softmax's
    meeting:    what its text must know where it is one launch with another kernel
    """
    least = {axis: size for axis, size in (least or {}).items() if axis in block.sizes}
    _check(block)
    handed = finishes or Unfinished()
    if meeting.fresh:
        meeting = replace(meeting, fresh=meeting.fresh.union(tensor.name for tensor in handed.maxima))
    tiled = tile_graph(
        block, schedule, handed, least, unfinished=unfinished, may_overflow=may_overflow, divided=divided
    )
    block, plan = tiled.block, tiled.plan
    if target is not None:
        check_shared(shared_estimate(block, tiled.softmax.nodes, tiled.facts, plan, tiled.dims, schedule), target)
    names = kernel_names(block.tensors, plan)
    grid = grid_of(schedule, plan, names)
    constants = Constants(plan, names)
    indices = Indices(plan, tiled.dims, block.sizes, names, grid)
    emitter = Emitter(
        block,
        plan,
        tiled.softmax,
        tiled.facts,
        tiled.order,
        indices,
        constants,
        schedule.precision,
        schedule.num_stages,
        meeting,
        evicts_first(block, schedule),
    )
    body = _body(emitter)
    jit = jit_function(f"{block.name}_kernel", block, plan, names, constants.named, body)
    source = KernelSource(
        name=block.name,
        jit=jit.text,
        pointers=jit.pointers,
        constexprs=jit.constexprs,
        grid=grid.launch,
        inputs=block.inputs,
        outputs=block.outputs,
        sizes=block.sizes,
        num_warps=schedule.num_warps,
        num_stages=schedule.num_stages,
        launcher="",
        unfinished=tiled.left,
        least={axis: size for axis, size in least.items() if axis not in (divided or {}).values()},
        divided={axis: split for axis, split in (divided or {}).items() if axis in least},
        arguments=jit.arguments,
        takes_tf32=schedule.precision == TF32 and any(op.tf32 for op in block.ops),
    )
    if least:
        terms = grid_terms(grid, plan)
        first = next(
            (axis for axis in block.sizes if axis in leading), next(axis for axis in block.sizes if axis in least)
        )
        how = (schedule.num_warps, schedule.num_stages, schedule)
        part = schedule.part if source.divided else 0
        launch = Launch(block.sizes[first], grid.launch, terms, jit.constexprs, *how, part)
        source = replace(source, by=first, launches=(launch,))
    return replace(source, launcher=launcher_text(block.name, [source]))


def _body(emitter: Emitter) -> list[str]:
    root = emitter.emit()
    items: list[Item] = [*root.head, *root.items]
    printer = Printer()
    printer.render(items)  # decides which values are written into others
    prune(items, printer)
    return printer.render(items)


def _both(one: Unfinished, other: Unfinished) -> Unfinished:
    return Unfinished((*one.maxima, *other.maxima), {**one.degrees, **other.degrees}, {**one.storage, **other.storage})


def _check(block: BlockGraph) -> None:
    """Outputs are written contiguous, and each once."""
    stored = [op.tensor for op in block.ops if op.kind.name == "store"]
    for tensor in block.outputs:
        if stored.count(tensor.name) > 1:
            raise Rejected(f"output {tensor.name} is stored twice.")
        dense = contiguous_strides(tensor.dims, block.sizes)
        shape = tensor.shape(block.sizes)
        if any(size > 1 and have != want for size, have, want in zip(shape, tensor.strides, dense, strict=True)):
            raise Rejected(f"output {tensor.name} is not contiguous.")
