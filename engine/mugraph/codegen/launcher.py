"""Text of the function that allocates the outputs of kernels and launches them."""

from __future__ import annotations

from collections.abc import Collection, Sequence

from mugraph.codegen.arguments import argument_lines
from mugraph.codegen.dynamic import EARLY, launch_lines, part_lines, shape_text, size_lines
from mugraph.ir.dtypes import COMPUTED
from mugraph.ir.kernel import KernelSource, Rejected
from mugraph.ir.names import RESERVED, Scope
from mugraph.ir.tensors import Tensor


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


def launcher_text(name: str, kernels: Sequence[KernelSource], kept: Collection[str] = ()) -> str:
    """`def launch_<name>(<inputs>)` -> the output, or a tuple of the outputs.

    kept: outputs that are returned though a kernel reads them again

    What one kernel hands to the next is allocated by each call, from PyTorch's allocator, so that calls on several
    streams and captured ones do not share it.
    """
    inputs, outputs = borders(kernels, kept)
    if not inputs:
        raise Rejected("the kernel has no inputs.")
    counted = {split for kernel in kernels for split in kernel.divided.values()}
    least = {axis: size for kernel in kernels for axis, size in kernel.least.items() if axis not in counted}
    scope = Scope({*RESERVED, *(("grid", "schedule") if least else ())})
    called = {tensor.name: scope.unique(tensor.name) for tensor in inputs}
    made = [(kernel, tensor) for kernel in kernels for tensor in kernel.outputs]
    called |= {tensor.name: scope.unique(tensor.name) for _, tensor in made}
    device = f"device={called[inputs[0].name]}.device"
    lines = [f"def launch_{name}({', '.join(called[tensor.name] for tensor in inputs)}):"]
    known = {axis: size for kernel in kernels for axis, size in kernel.sizes.items()}
    read, sizes = size_lines(inputs, called, known, least, scope)
    lines += [f"    {line}" for line in read]
    for kernel in kernels:
        for axis, split in kernel.divided.items():
            chosen, sizes[split] = part_lines(kernel, axis, sizes, scope)
            lines += [f"    {line}" for line in chosen]
    for kernel, tensor in made:
        if kernel.library is not None and kernel.library.allocates:
            continue
        size = shape_text(tensor, kernel.sizes, sizes)
        place = f"{device}, dtype={COMPUTED[tensor.dtype].torch_text}"
        lines.append(f"    {called[tensor.name]} = torch.empty({size}, {place})")
    for kernel in kernels:
        if kernel.library is not None:
            lines.append(f"    {kernel.library.text(called)}")
            continue
        if kernel.launches:
            lines += [f"    {line}" for line in launch_lines(kernel, called, sizes)]
            continue
        named = [f"{key}={value!r}" for key, value in kernel.constexprs.items()]
        lines.append(f"    {kernel.function}[{kernel.grid}](")
        lines.append(f"        {', '.join(called[tensor.name] for tensor in (*kernel.inputs, *kernel.outputs))},")
        lines += [f"        {line}" for line in argument_lines(named)]
        early = f" {EARLY}," if kernel.early else ""
        lines.append(f"        num_warps={kernel.num_warps}, num_stages={kernel.num_stages},{early}")
        lines.append("    )")
    lines.append(f"    return {', '.join(called[tensor.name] for tensor in outputs)}")
    return "\n".join(lines)
