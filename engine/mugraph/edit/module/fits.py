"""The test of one region in the kernel module: whether its kernels may run on tensors."""

from __future__ import annotations

from collections.abc import Collection, Sequence

from mugraph.edit.module.entry import tensors_fit
from mugraph.edit.module.masks import masks_of, triangle_text
from mugraph.edit.module.only_indices import only_indices
from mugraph.edit.module.operator import call, function, torch_type, tuple_text
from mugraph.edit.module.reads import is_direct
from mugraph.edit.module.wrapper_sizes import RunSizes
from mugraph.edit.module.written import apart_checks
from mugraph.ir.kernel import Rejected
from mugraph.ir.region import TensorInfo
from mugraph.plans.plan import RegionPlan


def fits(plan: RegionPlan, parameters: tuple[str, ...], sizes: RunSizes) -> str:
    """The test. It only compares Python values, so that torch.compile turns it into guards."""
    if not parameters:
        raise Rejected("the region reads no tensor")
    dynamic, masks = plan.region.dynamic, list[str]()
    anywhere = _anywhere(plan)
    checks = call("", "_runs_here", _where(parameters, anywhere), width=90) if dynamic is None else []
    if dynamic is not None:
        for number, one in enumerate(sizes.ranges):
            checks.append(f"{'and ' if number else ''}{one.least} <= {sizes.names[one.name]} <= {one.largest}")
        checks += sizes.faster(plan.faster_for)
    for live_in, parameter in zip(plan.region.live_ins, parameters, strict=True):
        info = plan.region.values[live_in.value]
        of_one = [
            f"{parameter}.dtype is {torch_type(info.dtype)}",
            f"{parameter}.shape == {sizes.shape(live_in.value)}",
            *_stride_checks(parameter, info, live_in.value, sizes),
        ]
        together = f"and {' and '.join(of_one)}"
        checks += [together] if len(together) <= 104 else [f"and {check}" for check in of_one]
    for live_in, parameter in zip(plan.region.live_ins, parameters, strict=True):
        if triangle := masks_of(plan).get(live_in.value):
            masks.append(f"_holds({parameter}, {triangle_text(triangle, plan.region.values[live_in.value])})")
    masks += apart_checks(plan, parameters)
    checks += [f"and {mask}" for mask in masks]
    first = parameters[0]
    checks.append(f'and _right_here("{plan.name}", {first}.device.type, {first}.device.index)')
    first_lines: list[str] = []
    if dynamic is None:
        named = [f'"{plan.name}"', *parameters]
        places = [f"anywhere={tuple_text(anywhere)}"] if anywhere else []
        checks += call("and ", "_fit_from_now", [*named, *places], width=90)
        first_lines += call("if ", "_fit_again", named, ":", width=90)
        first_lines.append(f"    return {' and '.join(masks) or True}")
    if dynamic is not None:
        given = _where(parameters, anywhere, "any_size=True")
        dims = "".join(f" or {owner}.dim() != {rank}" for owner, rank in sizes.ranks.items())
        first_lines += call("if not ", "_runs_here", given, f"{dims}:", width=100)
        first_lines += ["    return False", *sizes.lines]
        shapes = [
            f"({parameter}, {sizes.shape(live_in.value)})"
            for live_in, parameter in zip(plan.region.live_ins, parameters, strict=True)
        ]
        ranges = ", ".join(f"({sizes.names[one.name]}, {one.least}, {one.largest})" for one in sizes.ranges)
        fitting = [f"[{ranges}]", *shapes]
        first_lines += call("if torch.compiler.is_exporting() and not ", "_known_to_fit", fitting, ":", 100)
        first_lines.append("    return False")
    answer = [*first_lines, "return (", *(f"    {check}" for check in checks), ")"]
    if is_direct(plan):
        refusal = [
            "except Exception:  # a tensor of another kind, which has no strides or no memory",
            "    return False",
        ]
        answer = ["try:", *(f"    {line}" for line in answer), *refusal]
    body = ['"""Whether it may run on these: what it was made and tested for, and no gradient is wanted."""', *answer]
    return function(tensors_fit(plan), parameters, "bool", body, sizes.parameters)


def _anywhere(plan: RegionPlan) -> tuple[int, ...]:
    """Positions of live-ins that may begin at any address: those that did not begin at a whole word where the program
    was traced, and, with a range, those that no kernel reads."""
    indices = only_indices(plan) if plan.region.dynamic is not None else frozenset[int]()
    values = [live_in.value for live_in in plan.region.live_ins]
    return tuple(at for at, value in enumerate(values) if value in indices or plan.region.values[value].skew)


def _where(parameters: Sequence[str], anywhere: Collection[int], *more: str) -> list[str]:
    """The arguments of `_runs_here`."""
    given = [*(name for at, name in enumerate(parameters) if at not in anywhere), *more]
    others = [name for at, name in enumerate(parameters) if at in anywhere]
    return [*given, f"anywhere=({', '.join(others)},)"] if others else given


def _stride_checks(parameter: str, info: TensorInfo, value: int, sizes: RunSizes) -> list[str]:
    """Conditions on a tensor's strides. That of a dimension of size 1 is left out: it addresses nothing."""
    if all(size != 1 for size in info.shape):
        return [f"{parameter}.stride() == {sizes.strides(value)}"] if info.shape else []
    return [
        f"{parameter}.stride({dimension}) == {sizes.stride(value, dimension)}"
        for dimension, size in enumerate(info.shape)
        if size != 1
    ]
