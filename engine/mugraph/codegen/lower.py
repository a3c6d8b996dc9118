"""A block graph and a schedule become one Triton kernel: pure text generation, without torch or triton.

The steps, each in its own file of `mugraph.codegen.tile`: axes → nodes → dimensions → order → safe softmax → emission.
"""

from __future__ import annotations

import re
from collections.abc import Collection, Mapping, Sequence
from dataclasses import replace

from mugraph.codegen.dynamic import check_dynamic, grid_terms
from mugraph.codegen.launcher import borders, launcher_text
from mugraph.codegen.tile.analyses import analyse, varying
from mugraph.codegen.tile.axes import Dim, Plan, plan_axes, widen
from mugraph.codegen.tile.build import tile_nodes
from mugraph.codegen.tile.constants import Constants
from mugraph.codegen.tile.dims import product_dims, tile_dims
from mugraph.codegen.tile.emit import Emitter
from mugraph.codegen.tile.handover import absolute, relative, storage_of, with_loads, with_maxima
from mugraph.codegen.tile.index import Indices, grid_of, kernel_names
from mugraph.codegen.tile.masks import with_keeps
from mugraph.codegen.tile.nodes import Node, Nodes
from mugraph.codegen.tile.order import total_order
from mugraph.codegen.tile.shared import check_shared, shared_estimate
from mugraph.codegen.tile.softmax import safe_softmax
from mugraph.codegen.tile.text import Item, Printer, prune
from mugraph.ir.block import BlockGraph, Schedule
from mugraph.ir.kernel import KernelSource, Launch, Rejected, Unfinished
from mugraph.ir.library import library_call
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
) -> KernelSource:
    """Kernels that run one after the other, as one source that is named after the first and launches all.

    Each may hand sums to a later one that it leaves unfinished. Raises Rejected as `lower` does.

    outputs: tensors that are returned though a later kernel reads them
    program: what they compute; the sizes of its dynamic axes (`least`) are arguments of the launch
    """
    for block, _ in kernels:
        check_dynamic(block, program)
    least: Mapping[str, int] = program.least if program is not None else {}
    parts: list[KernelSource] = []
    handed = Unfinished()
    for number, (block, schedule) in enumerate(kernels):
        if schedule.library:
            parts.append(_library(block, handed, least))
            continue
        read_later = {tensor.name for other, _ in kernels[number + 1 :] for tensor in other.inputs}
        finished = not read_later.issuperset(tensor.name for tensor in block.outputs)
        parts.append(
            lower(
                block,
                schedule,
                target=target,
                finishes=handed,
                unfinished=not finished,
                least=least,
                may_overflow=program is not None and not is_shift_invariant(program.ops),
            )
        )
        if any(left in outputs for left in parts[-1].unfinished.degrees):
            raise Rejected(f"{block.name} leaves an output of the program relative to a maximum.")
        handed = _both(handed, parts[-1].unfinished)
    if len(parts) == 1:
        return parts[0]
    inputs, stored = borders(parts, outputs)
    sizes = {axis: size for part in parts for axis, size in part.sizes.items()}
    dynamic = {axis: size for part in parts for axis, size in part.least.items()}
    jit = "\n\n\n".join(part.jit for part in parts if part.jit)
    launcher = launcher_text(parts[0].name, parts, outputs)
    whole = replace(parts[0], jit=jit, inputs=inputs, outputs=stored, sizes=sizes, launcher=launcher, least=dynamic)
    return replace(whole, parts=tuple(parts))


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
    may_overflow: bool = False,
) -> KernelSource:
    """The kernel of a candidate. Raises Rejected, with one sentence, for what the rules cannot lower, and for what
    needs more shared memory than `target` has (an estimate).

    finishes:   of the kernels before it, whose sums it loads
    unfinished: another kernel finishes its outputs, so they may be relative to maxima, which it stores besides
    least:      dynamic axes -> their least size: their sizes are arguments, at most what the block graph has
    may_overflow: the program has exponentials that are no softmax's
    """
    least = {axis: size for axis, size in (least or {}).items() if axis in block.sizes}
    _check(block)
    handed = finishes or Unfinished()
    block = with_loads(block, handed)
    plan = plan_axes(block, schedule, least)
    nodes = _finishing(with_keeps(tile_nodes(block, schedule, plan)), plan, handed)
    dims = tile_dims(block, nodes, plan)
    sides = {d for n in nodes.values() if n.kind.contracts for d in _sides(n.name, nodes, plan, dims)}
    plan = widen(plan, [dim for dim in dims if dim in sides])
    # A loop may have become one iteration.
    nodes = _finishing(with_keeps(tile_nodes(block, schedule, plan)), plan, handed)
    dims = tile_dims(block, nodes, plan)
    order = _order(block, nodes, plan, dims, schedule.swap)
    softmax = safe_softmax(nodes, plan, varying(nodes, plan), unfinished=unfinished, may_overflow=may_overflow)
    block, softmax, left = with_maxima(block, softmax, {tensor.name for tensor in handed.maxima})
    facts = analyse(softmax.nodes, plan, {tensor.name: tensor for tensor in block.tensors}, handed.storage)
    left = replace(left, storage=storage_of(block, facts, softmax.nodes))
    if target is not None:
        check_shared(shared_estimate(block, softmax.nodes, facts, plan, dims, schedule), target)

    names = kernel_names(block.tensors, plan)
    grid = grid_of(schedule, plan, names)
    constants = Constants(plan, names)
    emitter = Emitter(block, plan, softmax, facts, order, Indices(plan, dims, block.sizes, names, grid), constants)
    root = emitter.emit()
    items: list[Item] = [*root.head, *root.items]
    printer = Printer()
    printer.render(items)  # decides which values are written into others
    prune(items, printer)
    body = printer.render(items)

    tensors = (*block.inputs, *block.outputs)
    pointers = tuple(names.pointer[tensor.name] for tensor in tensors)
    words = set(re.findall(r"\w+", "\n".join(body)))
    sizes = {names.size[axis]: p.size for axis, p in plan.items() if names.size[axis] in words and not p.dynamic}
    arguments = {names.size[axis]: axis for axis, p in plan.items() if names.size[axis] in words and p.dynamic}
    tiles = {names.block[axis]: p.block for axis, p in plan.items() if names.block[axis] in words}
    named = {name: value for name, value in constants.named.items() if name in words}
    tiles = {name: value for name, value in tiles.items() if name not in sizes}
    function = f"{block.name}_kernel"
    groups: list[list[str]] = [[*pointers], [*arguments], [*sizes], [*named], [*tiles]]
    signature = [", ".join(p if i < 2 else f"{p}: tl.constexpr" for p in g) for i, g in enumerate(groups) if g]
    # One binary for all sizes: Triton would make others for 1 and for multiples of 16.
    once = f"(do_not_specialize=[{', '.join(map(repr, arguments))}])".replace("'", '"') if arguments else ""
    jit = "\n".join([f"@triton.jit{once}", f"def {function}(", *(f"    {line}," for line in signature), "):", *body])
    constexprs: dict[str, int | float] = {**sizes, **named, **tiles}
    source = KernelSource(
        name=block.name,
        jit=jit,
        pointers=pointers,
        constexprs=constexprs,
        grid=grid.launch,
        inputs=block.inputs,
        outputs=block.outputs,
        sizes=block.sizes,
        num_warps=schedule.num_warps,
        num_stages=schedule.num_stages,
        launcher="",
        unfinished=left,
        least=least,
        arguments=arguments,
    )
    if least:
        terms = grid_terms(grid, plan)
        first = next(axis for axis in block.sizes if axis in least)
        source = replace(
            source, launches=(Launch(block.sizes[first], grid.launch, terms, constexprs, *_launch(schedule), schedule),)
        )
    return replace(source, launcher=launcher_text(block.name, [source]))


def _finishing(nodes: dict[str, Node], plan: Plan, handed: Unfinished) -> dict[str, Node]:
    return relative(nodes, plan, handed) or absolute(nodes, plan, handed)


def _launch(schedule: Schedule) -> tuple[int, int]:
    return schedule.num_warps, schedule.num_stages


def _both(one: Unfinished, other: Unfinished) -> Unfinished:
    return Unfinished((*one.maxima, *other.maxima), {**one.degrees, **other.degrees}, {**one.storage, **other.storage})


def _sides(name: str, nodes: Nodes, plan: Plan, dims: tuple[Dim, ...]) -> tuple[Dim, Dim, Dim]:
    product = product_dims(nodes[name], nodes, plan, dims)
    return product.left, product.inner, product.right


def _order(block: BlockGraph, nodes: Nodes, plan: Plan, dims: tuple[Dim, ...], swap: bool) -> tuple[Dim, ...]:
    products = [product_dims(n, nodes, plan, dims) for n in nodes.values() if n.kind.contracts]
    of = {axis: dim for dim in dims for axis in dim.axes}
    memory: list[tuple[int, list[Dim]]] = []
    outputs = {tensor.name for tensor in block.outputs}
    for tensor in block.tensors:
        strides = tensor.axis_strides(block.sizes)
        axes = sorted((axis for axis in tensor.axes if axis in of), key=lambda axis: -abs(strides[axis]))
        memory.append((2 if tensor.name in outputs else 1, list(dict.fromkeys(of[axis] for axis in axes))))
    return total_order(dims, products, memory, swap)


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
