"""Text of the function that allocates a kernel's outputs and launches it."""

from __future__ import annotations

from collections.abc import Mapping

from mugraph.codegen.kernel import Rejected
from mugraph.codegen.names import RESERVED, Scope
from mugraph.ir.block import BlockGraph, Schedule

TORCH_TYPE = {"f16": "torch.float16", "bf16": "torch.bfloat16", "f32": "torch.float32"}
_WIDTH = 100


def launcher_text(
    block: BlockGraph,
    function: str,
    grid: tuple[int, int, int],
    constexprs: Mapping[str, int | float],
    schedule: Schedule,
) -> str:
    """`def launch_<name>(<inputs>)` -> the output, or a tuple of the outputs."""
    if not block.inputs:
        raise Rejected("the kernel has no inputs.")
    scope = Scope(RESERVED)
    parameters = [scope.unique(tensor.name) for tensor in block.inputs]
    results = [scope.unique(tensor.name) for tensor in block.outputs]
    lines = [f"def launch_{block.name}({', '.join(parameters)}):"]
    for result, tensor in zip(results, block.outputs, strict=True):
        shape = tensor.shape(block.sizes)
        size = f"({shape[0]},)" if len(shape) == 1 else f"({', '.join(map(str, shape))})"
        place = f"device={parameters[0]}.device, dtype={TORCH_TYPE[tensor.dtype]}"
        lines.append(f"    {result} = torch.empty({size}, {place})")
    named = [f"{name}={value!r}" for name, value in constexprs.items()]
    lines.append(f"    {function}[{grid}](")
    lines.append(f"        {', '.join([*parameters, *results])},")
    lines += _filled(named)
    lines.append(f"        num_warps={schedule.num_warps}, num_stages={schedule.num_stages},")
    lines.append("    )")
    lines.append(f"    return {', '.join(results)}")
    return "\n".join(lines)


def _filled(arguments: list[str]) -> list[str]:
    """Arguments, as many a line as fit."""
    lines: list[str] = []
    current = ""
    for argument in arguments:
        if current and len(current) + len(argument) + 10 > _WIDTH:
            lines.append(f"        {current}")
            current = ""
        current += f"{' ' if current else ''}{argument},"
    return [*lines, f"        {current}"] if current else lines
