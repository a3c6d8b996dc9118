"""Where a kernel takes TF32 because the program does, it may run only while the program still does."""

from __future__ import annotations

import ast
from collections.abc import Sequence
from dataclasses import replace

from mugraph.ir.block import TF32
from mugraph.ir.mugraph import GraphKernel
from mugraph.ir.ops import Tf32
from mugraph.ir.region import PlainCalls, Region
from mugraph.ops.tf32 import settings_of
from mugraph.plans.plan import KernelStep

ASKS = "_takes_tf32"
"""The name of the kernel module's function that asks PyTorch."""


def asking(region: Region, steps: Sequence[KernelStep | PlainCalls]) -> Region:
    """The region with conditions on the settings that its kernels rely on. What PyTorch computes between them goes by
    the settings as they are, as the user's code does."""
    found: set[Tf32] = set()
    for step in steps:
        if isinstance(step, KernelStep) and any(_takes(kernel, step) for kernel in step.kernels):
            found.update(settings_of(step.unit.calls))
    return replace(region, guards=(*region.guards, *(f"{ASKS}({one!r})" for one in sorted(found)))) if found else region


def asked(guards: Sequence[str]) -> tuple[str, ...]:
    """The settings that a region's conditions ask for."""
    found: list[str] = []
    for guard in guards:
        match ast.parse(guard, mode="eval").body:
            case ast.Call(ast.Name(name), [ast.Constant(str(setting))]) if name == ASKS:
                found.append(setting)
            case _:
                pass
    return tuple(found)


def _takes(kernel: object, step: KernelStep) -> bool:
    """Of a kernel for a range of sizes, another schedule than the one that is shown may."""
    if not isinstance(kernel, GraphKernel) or not any(op.tf32 for op in kernel.block.ops):
        return False
    return kernel.schedule.precision == TF32 or bool(step.unit.program.least)
