"""Kernels that do not depend on one another as one launch, side by side: each has a part of the grid's blocks.

A small kernel leaves processors without work, and each launch has a start and an end, in which most of them have none.
Each kernel's body becomes a function that is given its block's ids, and the kernel that is launched calls one of them:

    pid = tl.program_id(0)
    if pid < 256:
        q_part(pid % 4, pid // 4, ...)
    else:
        k_part(pid - 256, ...)

The kernel with most memory to go through comes first. Blocks start in the order of their numbers, and what takes
longest should not begin last. All parts have the same number of warps, as a launch has one; registers and shared memory
are those of the part that needs most.
"""

from __future__ import annotations

from collections.abc import Collection, Iterator, Sequence
from dataclasses import replace
from math import prod

from mugraph.codegen.arguments import argument_lines
from mugraph.codegen.bodies import as_function, call_lines, ids_of, with_launches
from mugraph.codegen.launcher import borders, launcher_text
from mugraph.codegen.tile.index import GRID_LIMITS
from mugraph.ir.dtypes import itemsize
from mugraph.ir.kernel import KernelSource, Rejected
from mugraph.ir.names import Scope
from mugraph.ir.tensors import Tensor

_PID = "pid"


def one_grid(name: str, kernels: Sequence[KernelSource]) -> KernelSource:
    """The kernels as one, of this name. Raises Rejected where they cannot be."""
    _check(kernels)
    parts = sorted(kernels, key=bytes_of, reverse=True)
    inputs, outputs = borders(kernels)
    tensors = {tensor.name: tensor for tensor in (*inputs, *outputs)}
    scope = Scope({_PID, *(_part_name(part) for part in parts)})
    pointers = {one: scope.unique(f"{one}_ptr") for one in tensors}
    sizes = {axis: size for part in kernels for axis, size in part.sizes.items()}
    first = parts[0]
    joint = KernelSource(
        name=name,
        jit="\n\n\n".join(
            [*(as_function(part, _part_name(part)) for part in parts), "\n".join(_dispatch(name, parts, pointers))]
        ),
        pointers=tuple(pointers.values()),
        constexprs={},
        grid=(sum(prod(part.grid) for part in parts), 1, 1),
        inputs=inputs,
        outputs=outputs,
        sizes=sizes,
        num_warps=first.num_warps,
        num_stages=first.num_stages,
        launcher="",
        takes_tf32=any(part.takes_tf32 for part in parts),
        early=first.early,
        joined=tuple(parts),
    )
    return replace(joint, launcher=launcher_text(name, [joint]))


def with_one_grids(
    source: KernelSource, groups: Collection[Collection[str]], outputs: Collection[str] = ()
) -> KernelSource:
    """The same kernels, with each group of them, by their names, as one launch in the place of its first one. Raises
    Rejected.

    outputs: tensors that are returned though a later kernel reads them
    """
    launched: list[KernelSource] = []
    for part in source.kernels:
        group = next((group for group in groups if part.name in group), ())
        together = [one for one in source.kernels if one.name in group]
        if not together:
            launched.append(part)
        elif together[0] is part:
            launched.append(one_grid(part.name, together))
    return with_launches(source, launched, outputs)


def _check(kernels: Sequence[KernelSource]) -> None:
    """Raises Rejected."""
    for kernel in kernels:
        if kernel.library is not None or kernel.parts or kernel.joined:
            raise Rejected(f"{kernel.name} is not one generated kernel.")
        if kernel.least:
            raise Rejected(f"{kernel.name} has a size that varies.")
    if len({(kernel.num_warps, kernel.num_stages, kernel.early) for kernel in kernels}) > 1:
        raise Rejected("kernels of one launch have the same number of warps and of stages.")
    if sum(prod(kernel.grid) for kernel in kernels) > GRID_LIMITS[0]:
        raise Rejected("together the kernels have more thread blocks than a launch may have.")
    if len({kernel.name for kernel in kernels}) < len(kernels):
        raise Rejected("two kernels of one launch have the same name.")
    made = [tensor.name for kernel in kernels for tensor in kernel.outputs]
    read = {tensor.name for kernel in kernels for tensor in kernel.inputs}
    if len(set(made)) < len(made) or read & set(made):
        raise Rejected("a kernel reads or writes what another one of the launch writes.")
    tensors: dict[str, Tensor] = {}
    sizes: dict[str, int] = {}
    for kernel in kernels:
        for tensor in (*kernel.inputs, *kernel.outputs):
            if tensors.setdefault(tensor.name, tensor) != tensor:
                raise Rejected(f"{tensor.name} is two tensors.")
        for axis, size in kernel.sizes.items():
            if sizes.setdefault(axis, size) != size:
                raise Rejected(f"the axis {axis} has two sizes.")


def bytes_of(kernel: KernelSource) -> int:
    """Of memory that it goes through."""
    return sum(itemsize(one.dtype) * prod(one.shape(kernel.sizes)) for one in (*kernel.inputs, *kernel.outputs))


def _part_name(kernel: KernelSource) -> str:
    return f"{kernel.name}_part"


def _dispatch(name: str, parts: Sequence[KernelSource], pointers: dict[str, str]) -> Iterator[str]:
    yield "@triton.jit"
    yield f"def {name}_kernel("
    for line in argument_lines(list(pointers.values())):
        yield f"    {line}"
    yield "):"
    yield f"    {_PID} = tl.program_id(0)"
    start = 0
    for number, part in enumerate(parts):
        end = start + prod(part.grid)
        test = f"{'el' if number else ''}if {_PID} < {end}:" if number + 1 < len(parts) else "else:"
        yield f"    {test}"
        given = _block_ids(part, f"{_PID} - {start}" if start else _PID)
        given += [pointers[tensor.name] for tensor in (*part.inputs, *part.outputs)]
        for line in call_lines(_part_name(part), given, part.constexprs):
            yield f"        {line}"
        start = end


def _block_ids(kernel: KernelSource, number: str) -> list[str]:
    """number: of the block among the kernel's own, the first axis of its grid fastest"""
    found: list[str] = []
    inner = f"({number})" if " " in number else number
    for axis, _ in ids_of(kernel):
        before, after = prod(kernel.grid[:axis]), prod(kernel.grid[axis + 1 :])
        text = number if before == 1 else f"{inner} // {before}"
        if after > 1:
            text = f"{inner if before == 1 else text} % {kernel.grid[axis]}"
        found.append(text)
    return found
