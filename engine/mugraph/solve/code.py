"""The code as it runs, for the device: what kernels are compared with, and timed beside."""

from __future__ import annotations

from mugraph.codegen.plain import FUNCTION, region_source
from mugraph.codegen.written_at_once import written_at_once
from mugraph.ir.dtypes import COMPUTED, is_written
from mugraph.ir.region import Region
from mugraph.ops.tf32 import settings_of
from mugraph.plans.plan import KernelStep, RegionPlan
from mugraph.tune.messages import Subject


def code_of(region: Region, plan: RegionPlan | None = None) -> Subject:
    """plan: whose kernels are compared with it. Raises Rejected where a call of it cannot be spelled."""
    jumps = plan is not None and _jumps(plan)
    writes = tuple(at for at, live_in in enumerate(region.live_ins) if live_in.value in region.stored)
    source, settings = region_source(written_at_once(region)), settings_of(region.calls)
    return Subject("eager", source, FUNCTION, tf32=settings, jumps=jumps, writes=writes)


def _jumps(plan: RegionPlan) -> bool:
    """As of Subject: by what kernels compute, or what calls of PyTorch's own give."""
    units = [step.unit.program for step in plan.steps if isinstance(step, KernelStep)]
    read = {live.value for live in plan.region.live_ins}
    made = [value.dtype for name, value in plan.region.values.items() if name not in read]
    eight_bits = any(is_written(dtype) and dtype not in COMPUTED for dtype in made)
    return eight_bits or any(op.kind.jumps for program in units for op in program.ops)
