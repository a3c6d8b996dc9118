"""The functions of one region in the kernel module: the original as a reference, the test, and the replacement."""

from __future__ import annotations

import ast
from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass
from math import prod

from mugraph.codegen.over_inputs import writes_over
from mugraph.codegen.statements import statements
from mugraph.edit.module.entry import entry_text, is_alone, on_tensors, tensors_fit
from mugraph.edit.module.fits import fits
from mugraph.edit.module.freed import of_inputs, with_deletions
from mugraph.edit.module.laid import Laid, laid_as, order_of
from mugraph.edit.module.operator import call, function, returns, torch_type
from mugraph.edit.module.reads import Paths
from mugraph.edit.module.seen import as_seen, same_strides
from mugraph.edit.module.wrapper_sizes import RunSizes
from mugraph.edit.module.written import count_lines
from mugraph.edit.names import parameter_name
from mugraph.ir.calls import STORES, is_inplace, operands
from mugraph.ir.kernel import KernelSource, Rejected
from mugraph.ir.memory_order import Order, in_order, inverse
from mugraph.ir.names import Scope
from mugraph.ir.region import Call, Region, TensorInfo
from mugraph.ir.tensors import Tensor, contiguous_strides
from mugraph.plans.numbers import are_other_in_pytorch
from mugraph.plans.plan import KernelStep, RegionPlan
from mugraph.trace.regions.value_names import value_names


@dataclass(frozen=True)
class Wrapper:
    """Text of a region's functions.

    parameters: of those over tensors: one per live-in, in the region's order
    entry:      what the user's file calls, where that is not the test and the replacement themselves
    """

    name: str
    parameters: tuple[str, ...]
    reference: str
    fits: str
    replacement: str
    entry: str

    @property
    def text(self) -> str:
        return "\n\n\n".join(filter(None, (self.entry, self.fits, self.replacement, self.reference)))


def wrapper(
    plan: RegionPlan,
    kernels: Mapping[str, KernelSource],
    module_names: frozenset[str],
    classes: frozenset[str],
    paths: Paths | None,
    laid: Mapping[str, Sequence[Laid | None]],
) -> Wrapper:
    """The functions of `plan`. module_names: the module's own globals, which no local name may hide. classes: of the
    user's file, that are modules'. paths: what it reads (reads.py). laid: how what kernels return lies (laid.py)

    Raises Rejected when the plan's steps do not produce what the region must.
    """
    region = plan.region
    scope = Scope(module_names)
    parameters = tuple(scope.unique(parameter_name(live_in.expression)) for live_in in region.live_ins)
    names = {live_in.value: name for live_in, name in zip(region.live_ins, parameters, strict=True)}
    sizes = RunSizes.of(region, names, scope)
    _name_values(plan, names, scope)
    return Wrapper(
        plan.name,
        parameters,
        _reference(plan, parameters, names, sizes),
        fits(plan, parameters, sizes),
        _replacement(plan, kernels, parameters, names, sizes, laid),
        entry_text(plan, module_names, classes, paths),
    )


def _name_values(plan: RegionPlan, names: dict[int, str], scope: Scope) -> None:
    """Adds a name for every value the region defines."""
    wanted = {**value_names(plan.region.as_made), **value_names(plan.region)}
    for step in plan.steps:
        if isinstance(step, KernelStep):
            for name, value in step.unit.inputs.items():
                if value in step.unit.view_values:
                    wanted.setdefault(value, name)
    recorded = [value for made in plan.region.calls for value in made.outputs]
    by_steps: list[int] = []
    for step in plan.steps:
        if isinstance(step, KernelStep):
            by_steps += step.unit.outputs.values()
        else:
            by_steps += [value for made in step.calls for value in made.outputs]
    turned = _only_turned(plan.region, by_steps, names)
    defined = [*(value for value in recorded if value not in turned), *by_steps]
    every = (*plan.region.calls, *plan.region.as_made.calls)
    stored = {made.outputs[0]: operands(made)[0] for made in every if made.target == STORES}
    for write in writes_over(plan):
        stored |= {write.result: write.stored, write.after: write.stored}
    for value in dict.fromkeys(defined):
        if stored.get(value) in names:  # one tensor, before and after; what it held before is read before
            names[value] = names[stored[value]]
        if value not in names:
            names[value] = scope.unique(wanted.get(value, "value"))
    names.update({value: names[other] for value, other in turned.items()})


def _only_turned(region: Region, by_steps: Sequence[int], given: Collection[int]) -> dict[int, int]:
    """Values that no step makes as recorded, but in another order: each with the other, which has its name."""
    of = region.relaid.of if region.relaid is not None else dict[int, int]()
    here = {*by_steps, *given}
    return {of[value]: value for value in reversed(by_steps) if value in of and of[value] not in here}


def _bound(region: Region) -> set[int]:
    """Values that get a line of their own: those that the user's code names, and those that leave the region."""
    return {*region.names, *(live_out.value for live_out in region.live_outs)}


def _returning(lines: list[str], outputs: str) -> list[str]:
    """The lines and a `return` of the outputs. A value that is only returned is not bound to a name first."""
    if not outputs:
        return lines
    last = ast.parse("\n".join(lines)).body[-1]
    if (
        isinstance(last, ast.Assign)
        and len(last.targets) == 1
        and ast.unparse(last.targets[0]) in (outputs, f"({outputs})")
    ):
        first = last.lineno - 1
        return [*lines[:first], lines[first].replace(f"{outputs} = ", "return ", 1), *lines[first + 1 :]]
    return [*lines, f"return {outputs}"]


def _outputs(region: Region, names: Mapping[int, str]) -> str:
    missing = [out.expression or "the result" for out in region.live_outs if out.value not in names]
    if missing or not (region.live_outs or region.stored):
        raise Rejected(f"the region's steps never compute {', '.join(missing) or 'anything that is read after it'}")
    return ", ".join(names[out.value] for out in region.live_outs)


def _reference(plan: RegionPlan, parameters: tuple[str, ...], names: Mapping[int, str], sizes: RunSizes) -> str:
    region = plan.region
    lines = [f'"""What {region.function} computed here, in PyTorch, for the sizes the kernel was made for."""']
    lines += sizes.read(statements(sizes.calls(region.calls), names, _bound(region)))
    lines = _returning(lines, _outputs(region, names))
    name = f"_{plan.name}_reference"
    return function(name, parameters, returns(len(region.live_outs)), lines, sizes.parameters)


def _replacement(
    plan: RegionPlan,
    kernels: Mapping[str, KernelSource],
    parameters: tuple[str, ...],
    names: Mapping[int, str],
    sizes: RunSizes,
    laid: Mapping[str, Sequence[Laid | None]],
) -> str:
    region = plan.region
    said = [f'"""{region.function}; only where {tensors_fit(plan)} says yes (nothing is checked here)."""']
    lines: list[str] = []
    known = {live_in.value for live_in in region.live_ins}
    read = {value for step in plan.steps if isinstance(step, KernelStep) for value in step.unit.inputs.values()}
    bound = _bound(region) | read | _read_by_several(plan)
    checked = set(known)  # values whose strides are those that were recorded
    for step in plan.steps:
        if isinstance(step, KernelStep):
            kernel = kernels[step.kernel.name]
            lines += _kernel_call(plan, step, kernel, names, known, checked, sizes, laid[kernel.name])
            known |= set(step.unit.outputs.values()) | {write.after for write in writes_over(plan)}
            continue
        calls = [made for made in step.calls if not made.outputs or not known.issuperset(made.outputs)]
        if are_other_in_pytorch(region, calls):
            raise Rejected("a number that varies would be a tensor to PyTorch's calls, which is rounded otherwise")
        lines += statements(sizes.calls(calls), names, bound)
        checked |= _views(step.calls, checked)
        known |= {value for made in step.calls for value in made.outputs}
    if lacking := [out.expression or "the result" for out in region.live_outs if out.value not in known]:
        raise Rejected(f"no step of {plan.name} computes {', '.join(lacking)}")
    lines = _returning([*said, *sizes.read(lines)], _outputs(region, names))
    if "memory" not in plan.without:
        lines = with_deletions(lines, {names[value] for value in of_inputs(region, plan.steps)} | {*parameters})
    text = function(on_tensors(plan), parameters, returns(len(region.live_outs)), lines, sizes.parameters)
    return f"@torch.jit.unused\n{text}" if is_alone(plan) else text


def _views(calls: Sequence[Call], checked: Collection[int]) -> set[int]:
    """Parts of tensors whose own strides are tested: a part of a tensor with the recorded strides has its recorded
    ones."""
    found: set[int] = set()
    for made in calls:
        read = operands(made)
        is_same = made.target == STORES or is_inplace(made)  # the tensor that it writes to
        if is_same or (made.target in ("Tensor.__getitem__", "Tensor.view") and len(read) == 1):
            found.update(made.outputs if read[0] in checked or read[0] in found else ())
    return found


def _read_by_several(plan: RegionPlan) -> set[int]:
    """Values that one step of plain calls computes and a later step reads, or has of its own as well."""
    made: set[int] = set()
    shared: set[int] = set()
    for step in plan.steps:
        if not isinstance(step, KernelStep):
            own = {value for made_here in step.calls for value in made_here.outputs}
            shared |= ({value for call_ in step.calls for value in operands(call_)} | own) & made
            made |= own
    return shared


def _kernel_call(
    plan: RegionPlan,
    step: KernelStep,
    kernel: KernelSource,
    names: Mapping[int, str],
    known: set[int],
    checked: set[int],
    sizes: RunSizes,
    laid: Sequence[Laid | None],
) -> list[str]:
    """Lines that call a kernel's operator and leave its outputs as the user's program has them (shape, strides, type).

    Kernels address their inputs by fixed strides. Those of live-ins are compared by the test; a value made in between
    is brought to the strides the kernel was made for if the device's library chose others.
    """
    values, lines, arguments = plan.region.values, list[str](), list[str]()
    for tensor in kernel.inputs:
        value = step.unit.inputs[tensor.name]
        if value not in known:
            raise Rejected(f"{kernel.name} reads {tensor.name}, which no earlier step of {plan.name} computes")
        laid_out = names[value] if value in checked else f"_laid_out({names[value]}, {sizes.strides(value)})"
        arguments.append(as_seen(laid_out, tensor, kernel, values[value]))
    outputs = [step.unit.outputs[tensor.name] for tensor in kernel.made]
    bound = f"{', '.join(names[value] for value in outputs)} = " if outputs else ""
    lines += call(bound, f"_{kernel.name}", arguments, width=110)
    lines += count_lines(plan, step, names)
    for tensor, value, lies in zip(kernel.made, outputs, laid, strict=True):
        order = order_of(step, value, values[value])
        lines += _as_recorded(tensor, kernel, values[value], order, names[value], value, sizes, lies)
        checked.add(value)
    return lines


def _as_recorded(
    tensor: Tensor,
    kernel: KernelSource,
    info: TensorInfo,
    order: Order,
    name: str,
    value: int,
    sizes: RunSizes,
    lies: Laid | None,
) -> list[str]:
    """Lines that turn a kernel's contiguous output, whose dimensions are in this order, into the tensor the program
    had: later code may view it. lies: how it is returned, where that is not how it is stored"""
    lines: list[str] = []
    shape = tensor.shape(kernel.sizes)
    if prod(shape) != prod(info.shape) or any(s == 0 and d > 1 for d, s in zip(info.shape, info.strides, strict=True)):
        raise Rejected(f"{kernel.name} stores {tensor.name} in another shape than the program's")
    if tensor.dtype != info.dtype:
        lines.append(f"{name} = {name}.to({torch_type(info.dtype)})")
    if lies is None and shape != in_order(order, info.shape):
        lines.append(f"{name} = {name}.view({sizes.shape(value, order)})")
    if lies is None and order != tuple(range(len(order))):
        lines.append(f"{name} = {name}.permute({', '.join(map(str, inverse(order)))})")
    viewed = laid_as(tensor, kernel, info, order)
    strides = viewed[1] if viewed is not None else contiguous_strides(tensor.dims, kernel.sizes)
    if not same_strides(info.shape, strides, info.strides):
        lines.append(f"{name} = _laid_out({name}, {sizes.strides(value)})")
    return lines
