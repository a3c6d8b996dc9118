"""Which of a region's inputs hold no negative numbers in any program that means something: a root, or a logarithm, is
taken of them. Drawn with a sign, half of them give no number, and behind a convolution nothing is a number any more:
a comparison of that says nothing."""

from __future__ import annotations

from collections.abc import Iterable

from mugraph.ir.calls import Call, Ref, operands
from mugraph.ir.program import TensorProgram
from mugraph.ir.region import Region, SearchUnit
from mugraph.kinds import Kind
from mugraph.ops.algebra.registry import canonical
from mugraph.plans.plan import KernelStep, RegionPlan

_VARIANCES = {"torch.nn.functional.batch_norm": 2, "torch.nn.functional.instance_norm": 2, "torch.batch_norm": 4}
"""Of calls that PyTorch keeps: the place of their running variance."""
_VARIANCE = "running_var"


def positive_inputs(plan: RegionPlan) -> frozenset[int]:
    """Value numbers of such live-ins."""
    return positive_of_units(plan.region, [step.unit for step in plan.steps if isinstance(step, KernelStep)])


def positive_of_units(region: Region, units: Iterable[SearchUnit]) -> frozenset[int]:
    """As `positive_inputs`, for these search units of the region, which have no plan yet."""
    found = {value for call in region.calls for value in _variance(call)}
    for unit in units:
        found |= {unit.inputs[name] for name in below_roots(unit.program) if name in unit.inputs}
        for call in reversed(unit.views):  # a tensor is as its parts
            if found.intersection(call.outputs):
                found.update(operands(call))
    return frozenset(found & {live_in.value for live_in in region.live_ins})


def below_roots(program: TensorProgram) -> frozenset[str]:
    """Tensors of which a root or a logarithm is taken: of the elements as they are, or with a positive constant added
    to them, or by which they are scaled."""
    made = {op.name: op for op in program.ops}
    found: set[str] = set()
    for op in program.ops:
        if not ("sqrt" in op.kind.primitives or (op.kind.opaque is not None and op.kind.opaque.is_positive)):
            continue
        waiting = [made[name] for name in op.inputs]
        while waiting:
            below = waiting.pop()
            if below.kind is Kind.LOAD:
                found.add(below.tensor)
            elif below.kind.shifted_by or below.kind.scaled_by:
                operands_ = [made[name] for name in below.inputs]
                others = [one for one in operands_ if one.kind is not Kind.CONST]
                if len(others) == 1 and all(one.value > 0 for one in operands_ if one.kind is Kind.CONST):
                    waiting += others
    return frozenset(found)


def _variance(call: Call) -> tuple[int, ...]:
    place = _VARIANCES.get(canonical(call.target))
    if place is None:
        return ()
    given = call.kwargs.get(_VARIANCE, call.args[place] if place < len(call.args) else None)
    return (given.value,) if isinstance(given, Ref) else ()
