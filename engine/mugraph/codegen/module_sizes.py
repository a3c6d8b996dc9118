"""What a kernel module has besides where a region's size is known at run time only: it is tried at several sizes."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from mugraph.codegen.plan import RegionPlan
from mugraph.ir.calls import TensorInfo
from mugraph.trace.ranged import values_at

_ONE = "        sys.exit(0 if _check(sys.argv[1], torch.device(sys.argv[2])) else 1)\n"
_ALL = """\
        _own = [case for case in _CASES if case.partition(",")[0] == sys.argv[1]]
        sys.exit(0 if all([_check(case, torch.device(sys.argv[2])) for case in _own]) else 1)
"""


def with_sizes(check: str, plans: Sequence[RegionPlan]) -> str:
    """The module's last part: a region is right when it is right at all sizes that `_CASES` has of it."""
    if all(plan.region.dynamic is None for plan in plans):
        return check
    assert _ONE in check
    return check.replace(_ONE, _ALL)


def cases_of(plan: RegionPlan) -> Mapping[str, Mapping[int, TensorInfo]]:
    """Name of a case -> what the region's values are in it. The largest size goes by the region's own name."""
    region = plan.region
    cases: dict[str, Mapping[int, TensorInfo]] = {plan.name: region.values}
    if region.dynamic is not None:
        for size in region.dynamic.range.samples:
            name = f"{plan.name}, {region.dynamic.range.name} = {size}"
            cases[name] = values_at(region, region.dynamic, size)
    return cases
