"""A kernel whose blocks store partial sums, and the kernel that combines them, as one launch: the last block of a group
combines what all of the group have stored.

    pid = tl.program_id(0)
    product_body(pid % 4, pid // 4, ...)
    group = pid // 4
    tl.debug_barrier()
    before = tl.atomic_add(arrived_ptr + group, 1, sem="acq_rel", scope="gpu")
    if before == 3:
        product_combine_body(group, ...)
        tl.store(arrived_ptr + group, 0)

A group is all blocks whose sums meet in the same elements. Each stores its own, then adds 1 to the counter of its
group. The barrier puts the stores of all threads of a block before the addition of one of them, and the addition
releases them: who finds the last number sees them all (PTX ISA, "Memory Consistency Model": release and acquire
patterns, which barriers extend to the threads of a block). That one combines the parts in the order in which the
second kernel does, whichever block it is, so that every run has the same bits; sums that blocks add to the result
would not. Then it sets the counter back to 0, for the next launch. No block waits for another one, so it does not
matter how many of them the device runs at a time. This is the reduction with a fence of NVIDIA's samples
(threadFenceReduction), with a counter for each tile, as split-K with semaphores has them.

What is the same along an axis of the grid is stored by the first block along it, where a second kernel reads it. Here
each group would wait for another one's block: so each has a copy of its own (`copies`).
"""

from __future__ import annotations

from collections.abc import Collection, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from math import ceil, prod

from mugraph.codegen.arguments import argument_lines
from mugraph.codegen.bodies import as_function, call_lines, ids_of, with_launches
from mugraph.codegen.launcher import COUNTERS, launcher_text
from mugraph.codegen.tile.index import GRID_LIMITS, REACH
from mugraph.codegen.tile.meeting import Meeting
from mugraph.ir.block import BlockGraph, Schedule
from mugraph.ir.kernel import KernelSource, LastBlock, Rejected
from mugraph.ir.names import Scope, numbered, unused
from mugraph.ir.tensors import Tensor, contiguous_strides

_PID, _GROUP, _PART = "pid", "group", "part"


@dataclass(frozen=True)
class _Digit:
    """Of a number that counts along several axes. unit: what one more along this one adds to it"""

    axis: str
    size: int
    unit: int


Kernel = tuple[BlockGraph, Schedule]


def meetings_of(first: Kernel, second: Kernel) -> dict[str, Meeting]:
    """What both texts must know, by the names of the kernels."""
    shared = frozenset(digit.axis for digit in _grouped(first, second))
    made = frozenset(tensor.name for tensor in first[0].outputs)
    return {first[0].name: Meeting(copied=shared), second[0].name: Meeting(fresh=made)}


def digits(block: BlockGraph, schedule: Schedule) -> list[_Digit]:
    """Of the number of a thread block, the first axis of the grid fastest."""
    found: list[_Digit] = []
    unit = 1
    for axis, tile in schedule.grid:
        count = ceil(block.sizes[axis] / tile)
        if count > 1:
            found.append(_Digit(axis, count, unit))
        unit *= count
    return found


def _grouped(first: Kernel, second: Kernel) -> list[_Digit]:
    """Axes along which blocks of the first kernel are in several groups: those that the second one's grid has, too."""
    return [digit for digit in digits(*first) if digit.axis in dict(second[1].grid)]


def with_last_blocks(
    source: KernelSource,
    kernels: Sequence[Kernel],
    pairs: Collection[tuple[str, str]],
    outputs: Collection[str] = (),
) -> KernelSource:
    """The same kernels, with each pair, by their names, as one launch in the place of its first one. Raises Rejected.

    source:  lowered from `kernels`, with the meetings of the pairs
    outputs: tensors that are returned though a later kernel reads them
    """
    firsts, seconds = dict(pairs), {second for _, second in pairs}
    launched: list[KernelSource] = []
    for at, part in enumerate(source.kernels):
        if part.name in firsts:
            _check_follows(source.kernels, at, firsts[part.name], outputs)
            made = _met(kernels[at], kernels[at + 1], part, source.kernels[at + 1])
            launched.append(as_one(part.name, made))
        elif part.name not in seconds:
            launched.append(part)
    return with_launches(source, launched, outputs)


def as_one(name: str, made: LastBlock) -> KernelSource:
    """The kernel of this name that is both."""
    first, second = made.first, made.second
    given = {tensor.name for tensor in first.outputs}
    inputs = {tensor.name: tensor for tensor in (*first.inputs, *second.inputs) if tensor.name not in given}
    sizes = {**second.sizes, **first.sizes}
    scratch = list[Tensor]()
    for tensor in first.outputs:
        if tensor.name in made.copies:
            axis = unused(numbered(_GROUP), sizes)
            sizes[axis] = made.groups
            dims = ((axis,), *tensor.dims)
            tensor = replace(tensor, dims=dims, strides=contiguous_strides(dims, sizes))
        scratch.append(tensor)
    tensors = (*inputs.values(), *scratch, *second.outputs)
    scope = Scope({_PID, _GROUP, _PART, "before", _body(first), _body(second)})
    pointers = {tensor.name: scope.unique(f"{tensor.name}_ptr") for tensor in tensors}
    counter = scope.unique(f"{COUNTERS}_ptr")
    functions = [as_function(first, _body(first)), as_function(second, _body(second))]
    text = "\n".join(_text(name, made, pointers, counter))
    joint = KernelSource(
        name=name,
        jit="\n\n\n".join([*functions, text]),
        pointers=(*pointers.values(), counter),
        constexprs={},
        grid=(prod(first.grid), 1, 1),
        inputs=tuple(inputs.values()),
        outputs=second.outputs,
        sizes=sizes,
        num_warps=first.num_warps,
        num_stages=first.num_stages,
        launcher="",
        takes_tf32=first.takes_tf32 or second.takes_tf32,
        early=first.early,
        combined=made,
        scratch=tuple(scratch),
        counters=made.groups,
    )
    return replace(joint, launcher=launcher_text(name, [joint]))


def _body(kernel: KernelSource) -> str:
    return f"{kernel.name}_body"


def _check_follows(kernels: Sequence[KernelSource], at: int, second: str, outputs: Collection[str]) -> None:
    """Raises Rejected."""
    if at + 1 == len(kernels) or kernels[at + 1].name != second:
        raise Rejected(f"{second} does not come right after {kernels[at].name}.")
    both = kernels[at], kernels[at + 1]
    for kernel in both:
        if kernel.library is not None or kernel.joined or kernel.combined or kernel.parts:
            raise Rejected(f"{kernel.name} is not one generated kernel.")
        if kernel.least or kernel.divided or kernel.launches:
            raise Rejected(f"{kernel.name} has a size that varies.")
    if both[0].num_warps != both[1].num_warps:
        raise Rejected("kernels of one launch have the same number of warps.")
    made = {tensor.name for tensor in both[0].outputs}
    read = {tensor.name for tensor in both[1].inputs}
    later = {tensor.name for kernel in kernels[at + 2 :] for tensor in kernel.inputs}
    if not made <= read or made & (later | {*outputs}):
        raise Rejected(f"what {both[0].name} stores is not all for {second}, and for no other one.")


def _met(one: Kernel, other: Kernel, first: KernelSource, second: KernelSource) -> LastBlock:
    """Raises Rejected."""
    own, after, shared = digits(*one), digits(*other), _grouped(one, other)
    axes = [digit.axis for digit in shared]
    units: dict[str, int] = {}
    for digit in shared:
        units[digit.axis] = prod(before.size for before in shared[: axes.index(digit.axis)])
    steps = {digit.axis: _steps(one, other, digit) for digit in after if digit.axis in axes}
    for digit in shared:
        if digit.axis not in steps:
            raise Rejected(f"{second.name} has {digit.axis} whole in a block, and {first.name} has not.")
    inner = {digit.axis: steps.get(digit.axis, digit.size) for digit in after}
    blocks = prod(inner.values())
    places: dict[str, str] = {}
    unit = 1
    for digit in after:
        text = _digit(_PART, unit, inner[digit.axis], blocks) if inner[digit.axis] > 1 else ""
        unit *= inner[digit.axis]
        if digit.axis in axes:
            at = next(one for one in shared if one.axis == digit.axis)
            place = _digit(_GROUP, units[digit.axis], at.size, prod(one.size for one in shared))
            place = place if inner[digit.axis] == 1 else f"{_inner(place)} * {inner[digit.axis]}"
            text = f"{place} + {text}" if text else place
        places[digit.axis] = text or "0"
    groups = prod(digit.size for digit in shared)
    total = prod(digit.size for digit in own)
    if total != prod(first.grid) or prod(digit.size for digit in after) != prod(second.grid):
        raise Rejected(f"the grids of {first.name} and {second.name} are not those of their schedules.")
    if total > GRID_LIMITS[0]:
        raise Rejected("a launch has no more thread blocks along one axis than GRID_LIMITS says.")
    copies: dict[str, int] = {}
    for tensor in first.outputs:
        if not set(axes) <= set(tensor.axes):
            copies[tensor.name] = prod(tensor.shape(first.sizes))
            if copies[tensor.name] * groups >= REACH:
                raise Rejected(f"the copies of {tensor.name} are too many.")
    ids = _ids(first, own, {digit.axis: _digit(_PID, digit.unit, digit.size, total) for digit in own})
    group = _group(own, shared, total)
    return LastBlock(first, second, ids, group, groups, total // groups, _ids(second, after, places), blocks, copies)


def _steps(first: Kernel, second: Kernel, digit: _Digit) -> int:
    """Blocks of the second kernel along an axis for one of the first. Raises Rejected."""
    own, tile = dict(first[1].grid)[digit.axis], dict(second[1].grid)[digit.axis]
    count = ceil(first[0].sizes[digit.axis] / own)
    if own % tile or count * (own // tile) != digit.size:
        raise Rejected(f"tiles of {digit.axis} in {second[0].name} do not make up those of {first[0].name}.")
    return own // tile


def _ids(kernel: KernelSource, own: Sequence[_Digit], places: Mapping[str, str]) -> tuple[str, ...]:
    """What the kernel's function is given: the place along each axis of the grid that it asks for. Raises Rejected."""
    asked = ids_of(kernel)
    counts = tuple(digit.size for digit in own)
    if (*counts, 1, 1, 1)[:3] == kernel.grid and len(own) <= 3:
        return tuple(places[own[axis].axis] for axis, _ in asked)
    if kernel.grid[1:] != (1, 1) or [axis for axis, _ in asked] != [0]:
        raise Rejected(f"the grid of {kernel.name} is not its schedule's.")
    terms = [f"{_inner(places[one.axis])} * {one.unit}" if one.unit > 1 else places[one.axis] for one in own]
    return (" + ".join(terms),)


def _group(own: Sequence[_Digit], shared: Sequence[_Digit], total: int) -> str:
    """The number of a block's group, neighbouring axes taken together."""
    terms: list[str] = []
    weight, at = 1, 0
    while at < len(own):
        if own[at] not in shared:
            at += 1
            continue
        first, size = own[at], 1
        while at < len(own) and own[at] in shared:
            size *= own[at].size
            at += 1
        text = _digit(_PID, first.unit, size, total)
        terms.append(text if weight == 1 else f"{_inner(text)} * {weight}")
        weight *= size
    return " + ".join(terms)


def _digit(number: str, unit: int, size: int, total: int) -> str:
    """Of a number below `total`."""
    text = number if unit == 1 else f"{number} // {unit}"
    return text if unit * size == total else f"{text} % {size}"


def _inner(text: str) -> str:
    return f"({text})" if " " in text else text


def _text(name: str, made: LastBlock, pointers: Mapping[str, str], counter: str) -> Iterator[str]:
    def places(kernel: KernelSource) -> list[str]:
        found: list[str] = []
        for tensor in kernel.tensors:
            size = made.copies.get(tensor.name, 0) if made.groups > 1 else 0
            found.append(f"{pointers[tensor.name]} + {_GROUP} * {size}" if size else pointers[tensor.name])
        return found

    grouped = made.groups > 1
    yield "@triton.jit"
    yield f"def {name}_kernel("
    for line in argument_lines([*pointers.values(), counter]):
        yield f"    {line}"
    yield "):"
    yield f"    {_PID} = tl.program_id(0)"
    if grouped:
        yield f"    {_GROUP} = {made.group}"
    for line in call_lines(_body(made.first), [*made.ids, *places(made.first)], made.first.constexprs):
        yield f"    {line}"
    place = f"{counter} + {_GROUP}" if grouped else counter
    yield "    tl.debug_barrier()"
    yield f'    before = tl.atomic_add({place}, 1, sem="acq_rel", scope="gpu")'
    yield f"    if before == {made.members - 1}:"
    several = made.blocks > 1
    if several:
        yield f"        for {_PART} in range(0, {made.blocks}):"
    for line in call_lines(_body(made.second), [*made.last_ids, *places(made.second)], made.second.constexprs):
        yield f"        {'    ' if several else ''}{line}"
    yield f"        tl.store({place}, 0)"
