"""Where and how what is reported was measured."""

from __future__ import annotations

from collections.abc import Mapping

import msgspec

from mugraph.plans.plan import RegionPlan
from mugraph.solve.code import code_of
from mugraph.tune.measure import Measurer
from mugraph.tune.messages import Agreed, InputSpec, Subject


class OnDevice(msgspec.Struct, kw_only=True):
    """device: its name. Methods: how times on the device were taken, and times of calls."""

    device: str
    versions: Mapping[str, str]
    device_method: str
    called_method: str


def small_inputs(plan: RegionPlan) -> tuple[InputSpec, ...]:
    """Of what a region reads, scaled so that the values of a long chain stay numbers."""
    values = [plan.region.values[live.value] for live in plan.region.live_ins]
    return tuple(InputSpec(one.shape, one.strides, one.dtype, 0.02) for one in values)


def is_right(subject: Subject, plan: RegionPlan, measurer: Measurer) -> bool:
    """Whether it gives what the plan's code gives. Raises Rejected where that cannot be spelled."""
    agreed = measurer.agree(subject, code_of(plan.region, plan), small_inputs(plan))
    return isinstance(agreed, Agreed) and agreed.passed
