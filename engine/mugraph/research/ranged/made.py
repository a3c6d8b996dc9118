"""`python -m mugraph.research.ranged.made`: one program's kernels, found and tuned in a process of their own.

What is found is written as JSON: the module with the kernels, and for each size the inputs, the code as it is written
and the estimates.
"""

from __future__ import annotations

import argparse
import sys
from collections.abc import Sequence
from pathlib import Path

import msgspec

from mugraph.codegen.plain import region_source
from mugraph.edit.module.entry import on_tensors
from mugraph.edit.module.file import module_text
from mugraph.events import Done, RegionResult
from mugraph.ir.ranges import Point
from mugraph.optimizer.nodes import scheduled
from mugraph.options import Options
from mugraph.pipeline import run
from mugraph.plans.plan import RegionPlan
from mugraph.plans.scales import input_scales
from mugraph.sizes.search_unit import estimates_at, unit_at
from mugraph.solve.pytorch import written_us
from mugraph.store.keys import code_digest
from mugraph.targets import TARGETS, Target
from mugraph.tune.messages import InputSpec
from mugraph.units.ranged import region_at


class Case(msgspec.Struct):
    """At one size. code: a module, as written. offered: whether the kernels would run there, not the code.
    estimated_us: of the kernels and of the code, by the cost model"""

    point: dict[str, int]
    inputs: list[InputSpec]
    code: str
    offered: bool
    estimated_us: float
    code_estimated_us: float


class Made(msgspec.Struct):
    """module: None where no kernel was found, and why. function: in it, over the inputs' tensors. code: a digest of
    this package"""

    status: str
    reason: str
    module: str | None = None
    function: str = ""
    cases: list[Case] = []
    code: str = ""


def made(path: Path, points: Sequence[Point], options: Options) -> Made:
    """points: sizes of a range; of a program for one size, that one"""
    result = next(event.result for event in run(path, None, options) if isinstance(event, Done))
    found = [region for region in result.regions if region.plan is not None] or list(result.regions)
    if not found:
        return Made("none", "; ".join(result.errors) or "there is no region")
    region = found[0]
    if region.plan is None:
        return Made(region.status, region.reason or "no kernel was found")
    target = TARGETS[options.target]
    text = module_text([region.plan], region.sources, original_path=path, target=target, alone=True)
    cases = [_case(region, region.plan, point, target) for point in points]
    return Made(region.status, region.reason or "", text, on_tensors(region.plan), cases)


def _case(result: RegionResult, plan: RegionPlan, point: Point, target: Target) -> Case:
    dynamic, region = plan.region.dynamic, region_at(plan.region, point)
    scales = input_scales(plan)
    infos = [(live.value, region.values[live.value]) for live in region.live_ins]
    inputs = [InputSpec(one.shape, one.strides, one.dtype, min(1.0, scales.get(value, 1.0))) for value, one in infos]
    ours, code = 0.0, 0.0
    for found in result.units:
        solution, unit = found.solution, found.unit
        if solution is None:
            continue
        if dynamic is None:
            ours += solution.estimate_us
        else:
            unit = unit_at(unit, plan.region, point)
            kernels = [scheduled(kernel) for kernel in solution.kernels]
            ours += estimates_at(unit.program, kernels, solution.source, target)[0]
        code += written_us(plan.region, unit, target).eager_us
    size = point[dynamic.range.name] if dynamic is not None else 0
    inside = dynamic is None or plan.faster_for is None or any(a <= size <= b for a, b in plan.faster_for)
    return Case(dict(point), inputs, region_source(region), result.status == "improved" and inside, ours, code)


def main(arguments: Sequence[str]) -> int:
    parser = argparse.ArgumentParser(prog="python -m mugraph.research.ranged.made")
    parser.add_argument("file", type=Path)
    parser.add_argument("out", type=Path)
    parser.add_argument("--points", required=True, help="as JSON")
    parser.add_argument("--target", required=True)
    parser.add_argument("--seconds", type=float, default=4.0)
    parser.add_argument("--trials", type=int, default=16)
    parser.add_argument("--by-estimate", action="store_true")
    given = parser.parse_args(arguments)
    options = Options(
        target=given.target,
        budget_s=given.seconds,
        file_budget_s=15 * given.seconds,
        compare_with="code",
        peers=("eager",),
        trials=given.trials,
        measure=not given.by_estimate,
        overlap=False,  # no kernel for a range starts early either
        recorded=False,
    )
    points = msgspec.json.decode(given.points, type=list[dict[str, int]])
    found = made(given.file, points, options)
    found.code = code_digest()
    given.out.write_bytes(msgspec.json.encode(found))
    return 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
