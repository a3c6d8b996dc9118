"""Text of the function that allocates the outputs of kernels and launches them."""

from __future__ import annotations

from collections.abc import Collection, Mapping, Sequence

from mugraph.codegen.arguments import argument_lines
from mugraph.codegen.dynamic import EARLY, launch_lines, part_lines, shape_text, size_lines
from mugraph.ir.dtypes import WRITTEN
from mugraph.ir.kernel import KernelSource, Rejected, UpTo
from mugraph.ir.names import RESERVED, Scope
from mugraph.ir.tensors import Tensor

COUNTERS = "arrived"
"""Of the blocks of a launch that have stored what they have (last_block.py)."""


def borders(
    kernels: Sequence[KernelSource], kept: Collection[str] = ()
) -> tuple[tuple[Tensor, ...], tuple[Tensor, ...]]:
    """Inputs and outputs of kernels that run one after the other: what one stores for another is neither, but for the
    outputs in `kept`."""
    made = {tensor.name for kernel in kernels for tensor in kernel.outputs}
    read = {tensor.name for kernel in kernels for tensor in kernel.inputs}
    inputs = {tensor.name: tensor for kernel in kernels for tensor in kernel.inputs if tensor.name not in made}
    stored = (tensor for kernel in kernels for tensor in kernel.outputs)
    outputs = {tensor.name: tensor for tensor in stored if tensor.name not in read or tensor.name in kept}
    return tuple(inputs.values()), tuple(outputs.values())


def names_of(kernels: Sequence[KernelSource]) -> dict[str, str]:
    """The variables of a launcher whose sizes do not vary, by the names of their tensors."""
    scope = Scope(RESERVED)
    made = [tensor for kernel in kernels for tensor in (*kernel.scratch, *kernel.outputs)]
    return {tensor.name: scope.unique(tensor.name) for tensor in (*borders(kernels)[0], *made)}


def without_deletions(launcher: str) -> str:
    """The launcher, which keeps all that it allocates until it returns."""
    return "\n".join(line for line in launcher.splitlines() if not line.lstrip().startswith("del "))


def dead_after(kernels: Sequence[KernelSource], returned: Collection[str]) -> list[list[str]]:
    """Of each kernel but the last: what no later one reads of the tensors that kernels hand to one another."""
    last = {tensor.name: at for at, kernel in enumerate(kernels) for tensor in kernel.tensors}
    made = dict.fromkeys(tensor.name for kernel in kernels for tensor in (*kernel.scratch, *kernel.outputs))
    found = [[name for name in made if last[name] == at and name not in returned] for at in range(len(kernels))]
    return [*found[:-1], []]


def launcher_text(
    name: str, kernels: Sequence[KernelSource], kept: Collection[str] = (), smaller: Sequence[UpTo] = ()
) -> str:
    """`def launch_<name>(<inputs>)` -> the output, or a tuple of the outputs.

    kept: outputs that are returned though a kernel reads them again
    smaller: what is launched in place of the kernels up to a size. Raises Rejected where these are not of the same
             tensors

    What one kernel hands to the next is allocated by each call, from PyTorch's allocator, so that calls on several
    streams and captured ones do not share it. It is deleted after the last launch that reads it, before what later ones
    write is allocated: that has the same memory then, in the order of the stream. (A kernel that is launched before the
    one before it has ended writes nothing until it has: early.py.)
    """
    inputs, outputs = borders(kernels, kept)
    if not inputs:
        raise Rejected("the kernel has no inputs.")
    every = [*kernels, *(kernel for one in smaller for kernel in one.source.kernels)]
    counted = {split for kernel in every for split in kernel.divided.values()}
    least = {axis: size for kernel in every for axis, size in kernel.least.items() if axis not in counted}
    scope = Scope({*RESERVED, *(("grid", "schedule") if least else ())})
    called = {tensor.name: scope.unique(tensor.name) for tensor in inputs}
    lines = [f"def launch_{name}({', '.join(called[tensor.name] for tensor in inputs)}):"]
    known = {axis: size for kernel in reversed(every) for axis, size in kernel.sizes.items()}
    read, sizes = size_lines(inputs, called, known, least, scope)
    lines += [f"    {line}" for line in read]
    for one in smaller:
        own = borders(one.source.kernels, {tensor.name for tensor in outputs})
        for these, those in zip(own, (inputs, outputs), strict=True):
            if {tensor.name for tensor in these} != {tensor.name for tensor in those}:
                raise Rejected(f"the kernels up to {one.axis} = {one.largest} are of other tensors.")
        body = _body(one.source.kernels, outputs, called, sizes, scope.inner())
        lines += [f"    if {sizes[one.axis]} <= {one.largest}:", *(f"        {line}" for line in body)]
    lines += [f"    {line}" for line in _body(kernels, outputs, called, sizes, scope)]
    return "\n".join(lines)


def _body(
    kernels: Sequence[KernelSource],
    outputs: Sequence[Tensor],
    inputs: Mapping[str, str],
    sizes: Mapping[str, str],
    scope: Scope,
) -> list[str]:
    """Lines that allocate what kernels write, launch them and return. inputs, sizes: their variables"""
    called, sizes = dict(inputs), dict(sizes)
    made = [tensor for kernel in kernels for tensor in (*kernel.scratch, *kernel.outputs)]
    called |= {tensor.name: scope.unique(tensor.name) for tensor in made}
    called |= {written: called[read] for kernel in kernels for written, read in kernel.over.items()}
    counters = {kernel.name: scope.unique(COUNTERS) for kernel in kernels if kernel.counters}
    device = f"device={next(iter(inputs.values()))}.device"
    lines: list[str] = []
    for kernel in kernels:
        for axis, split in kernel.divided.items():
            chosen, sizes[split] = part_lines(kernel, axis, sizes, scope)
            lines += chosen

    def allocated(kernel: KernelSource) -> list[str]:
        if kernel.library is not None and kernel.library.allocates:
            return []
        found: list[str] = []
        for tensor in (*kernel.scratch, *kernel.made):
            size = shape_text(tensor, kernel.sizes, sizes)
            place = f"{device}, dtype={WRITTEN[tensor.dtype].torch_text}"
            found.append(f"{called[tensor.name]} = torch.empty({size}, {place})")
        if kernel.counters:
            made = f"torch.zeros(({kernel.counters},), {device}, dtype=torch.int32)"
            found.append(f"{counters[kernel.name]} = {made}")
        return found

    dead = dead_after(kernels, {tensor.name for tensor in outputs})
    first = next((at for at, names in enumerate(dead) if names), len(kernels))
    lines += [line for kernel in kernels[: first + 1] for line in allocated(kernel)]
    for number, kernel in enumerate(kernels):
        if number and dead[number - 1]:
            lines.append(f"del {', '.join(called[name] for name in dead[number - 1])}")
        lines += allocated(kernel) if number > first else []
        if kernel.library is not None:
            lines.append(kernel.library.text(called))
            continue
        if kernel.launches:
            lines += launch_lines(kernel, called, sizes)
            continue
        named = [f"{key}={value!r}" for key, value in kernel.constexprs.items()]
        lines.append(f"{kernel.function}[{kernel.grid}](")
        given = [called[tensor.name] for tensor in kernel.tensors]
        given += [counters[kernel.name]] if kernel.counters else []
        lines.append(f"    {', '.join(given)},")
        lines += [f"    {line}" for line in argument_lines(named)]
        early = f" {EARLY}," if kernel.early else ""
        lines.append(f"    num_warps={kernel.num_warps}, num_stages={kernel.num_stages},{early}")
        lines.append(")")
    over = {name for kernel in kernels for name in kernel.over}
    returned = [called[tensor.name] for tensor in outputs if tensor.name not in over]
    return [*lines, f"return {', '.join(returned)}"] if returned else lines
