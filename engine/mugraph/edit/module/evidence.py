"""The comment above a region's functions: what was replaced, how it was checked, what it gains."""

from __future__ import annotations

import textwrap
from collections.abc import Mapping
from dataclasses import dataclass
from math import prod
from typing import Literal

from mugraph.edit.names import mugraph_id
from mugraph.ir.kernel import KernelSource
from mugraph.plans.plan import KernelStep, RegionPlan
from mugraph.verification.primes import P, Q
from mugraph.verification.verdict import Verdict


@dataclass(frozen=True, slots=True)
class Speed:
    """How much faster the region became, and where that figure comes from.

    ratio:  time of the original over time of the replacement
    device: the GPU's name; what is being compared with, if it was measured ("NVIDIA H200, CUDA graphs, cold L2")
    at:     of a size in a range: the ratios at some sizes, "b = 1: 2.30x, b = 64: 0.98x"
    """

    ratio: float
    source: Literal["measured", "estimated"]
    device: str = ""
    at: str = ""


def evidence(plan: RegionPlan, kernels: Mapping[str, KernelSource], speed: Speed | None) -> str:
    """Comment lines. Each figure says where it comes from, and a check that was not made is said to be missing."""
    region, start, end = plan.region, plan.region.range.start.line + 1, plan.region.range.end.line + 1
    lines = [
        f"{plan.name}: μGraph {mugraph_id(plan)}",
        f"  replaces  {region.function}, line{'' if start == end else 's'} {start}{'' if start == end else f'-{end}'}",
    ]
    if region.dynamic is not None:
        size = region.dynamic.range
        where = "" if plan.faster_for is None else f"; runs for {size.words(plan.faster_for)}"
        lines.append(f"  sizes     {region.dynamic.words}{where}; blocks are those of the largest")
    for step in plan.steps:
        if isinstance(step, KernelStep):
            source = kernels[step.kernel.name]
            lines += [line for part in source.kernels for line in _kernel_lines(part)]
            lines += _verdict_lines(step.verdict)
            for one, below in zip(source.smaller, step.verdict.below, strict=True):
                lines.append(f"  up to     {one.axis} = {one.largest} others are launched, and checked by themselves:")
                lines += [line for part in one.source.kernels for line in _kernel_lines(part)]
                lines += _verdict_lines(below)
        else:
            count = len(step.calls)
            lines.append("  PyTorch   " + ("1 call as it was" if count == 1 else f"{count} calls as they were"))
    lines.append(f"  speed     {_speed(speed)}")
    return "\n".join(wrapped for line in lines for wrapped in _wrapped(line))


def _kernel_lines(kernel: KernelSource) -> list[str]:
    if kernel.library is not None:
        return [f"  library   {kernel.name}: {kernel.library.shown}"]
    grid = " x ".join(map(str, kernel.grid))
    warps = "1 warp" if kernel.num_warps == 1 else f"{kernel.num_warps} warps"
    stages = "1 stage" if kernel.num_stages == 1 else f"{kernel.num_stages} stages"
    early = "; starts while the kernel before it ends" if kernel.early else ""
    beside = f"; one launch of {_parts_words(kernel)}, side by side" if kernel.joined else ""
    if kernel.combined is not None:
        made = kernel.combined
        beside = f"; what its blocks store is combined in the same launch, as {made.second.name} ({made.groups} groups)"
    over = f"; {', '.join(kernel.over)} written over {', '.join(kernel.over.values())}" if kernel.over else ""
    return [f"  kernel    {kernel.name}: {grid} blocks, {warps}, {stages}{beside}{early}{over}"]


def _parts_words(kernel: KernelSource) -> str:
    """`q (256 blocks), k (64) and v (64)`."""
    first, *others = kernel.joined
    said = [f"{first.name} ({prod(first.grid)} blocks)", *(f"{one.name} ({prod(one.grid)})" for one in others)]
    return f"{', '.join(said[:-1])} and {said[-1]}"


def _verdict_lines(verdict: Verdict) -> list[str]:
    if not verdict.passed:
        return [f"  checked   NOT VERIFIED: {verdict.reason or 'no reason given'}"]
    sizes = "; ".join(" ".join(f"{axis}={size}" for axis, size in point.items()) for point in verdict.sizes)
    repeats = f"{verdict.repetitions} random repetition{'' if verdict.repetitions == 1 else 's'}"
    fields = f"the fields of {P} and {Q}"
    lines = [f"  checked   equal over {fields} in {repeats} at sizes {sizes or 'not recorded'}; {verdict.bound_words}"]
    if verdict.seed is not None:
        lines.append(f"  seed      {verdict.seed}")
    if verdict.proof is not None:
        lines.append(f"  proof     {verdict.proof.words}")
    lines.append(f"  schedule  {verdict.schedule_words}")
    if verdict.lowering is not None:
        lines.append(f"  calls     {verdict.lowering.words}")
    if verdict.ranges_words is not None:
        lines.append(f"  sizes     {verdict.ranges_words}")
    if verdict.max_rel_error is None:
        lines.append("  error     not tested in floating point")
    else:
        where = {"interpreter": "Triton's interpreter", None: "an unnamed device"}.get(
            verdict.float_device, verdict.float_device
        )
        eager = "" if verdict.eager_rel_error is None else f" (PyTorch: {verdict.eager_rel_error:.1e})"
        several = {axis: ", ".join(map(str, sizes)) for axis, sizes in verdict.dynamic_sizes.items()}
        at = " ".join(f"{axis}={several.get(axis, size)}" for axis, size in verdict.float_sizes.items())
        lines.append(
            f"  error     largest relative error {verdict.max_rel_error:.1e}{eager} against float64, on {where}"
            + (f" at {at}" if at else "")
            + ", when it was found"
        )
        lines += [f"  bits      {verdict.ulps_words}"] if verdict.ulps_words is not None else []
        lines += [f"  same bits {verdict.same_bits.words}"] if verdict.same_bits is not None else []
    if verdict.versions:
        lines.append("  with      " + ", ".join(f"{name} {version}" for name, version in verdict.versions.items()))
    return lines


def _speed(speed: Speed | None) -> str:
    if speed is None:
        return "not measured"
    return f"{speed.at or f'{speed.ratio:.2f}x'}, {speed.source}" + (f" ({speed.device})" if speed.device else "")


def _wrapped(line: str) -> list[str]:
    return textwrap.wrap(
        line, 110, initial_indent="# ", subsequent_indent="#             ", drop_whitespace=True, break_long_words=False
    )
