"""What a kernel module has in addition when a region's size is known at run time only: it is tried at several sizes."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from mugraph.ir.calls import TensorInfo
from mugraph.plans.plan import RegionPlan
from mugraph.units.ranged import values_at

KNOWN_TO_FIT = '''\
def _known_to_fit(size: tuple[Any, int, int], *shapes: tuple[torch.Tensor, tuple[Any, ...]]) -> bool:
    """Whether a program that is exported for many sizes has only such as fit: a comparison then leaves none out."""
    known, (value, least, largest) = torch.fx.experimental.symbolic_shapes.statically_known_true, size
    if not (known(value >= least) and known(value <= largest)):
        return False
    return all([known(had == made) for tensor, shape in shapes for had, made in zip(tensor.shape, shape)])
'''

_ONE = "        sys.exit(0 if _check(sys.argv[1], torch.device(sys.argv[2])) else 1)\n"
_ALL = """\
        _own = [case for case in _CASES if case.partition(",")[0] == sys.argv[1]]
        sys.exit(0 if all([_check(case, torch.device(sys.argv[2])) for case in _own]) else 1)
"""


def with_known_sizes(machinery: str, plans: Sequence[RegionPlan]) -> str:
    """The module's tests of where its kernels may run, with those for regions whose size varies."""
    if all(plan.region.dynamic is None for plan in plans):
        return machinery
    return f"{machinery.rstrip()}\n\n\n{KNOWN_TO_FIT}"


def with_sizes(check: str, plans: Sequence[RegionPlan]) -> str:
    """The module's last part. A region with several sizes is right if it is right at each size in `_CASES`."""
    if all(plan.region.dynamic is None for plan in plans):
        return check
    assert _ONE in check
    return check.replace(_ONE, _ALL)


def cases_of(plan: RegionPlan) -> Mapping[str, Mapping[int, TensorInfo]]:
    """Name of a case -> the shapes of the region's values in it. The case of the largest size has the region's own
    name."""
    region = plan.region
    cases: dict[str, Mapping[int, TensorInfo]] = {plan.name: region.values}
    if region.dynamic is not None:
        for size in region.dynamic.range.samples:
            name = f"{plan.name}, {region.dynamic.range.name} = {size}"
            cases[name] = values_at(region, region.dynamic, size)
    return cases
