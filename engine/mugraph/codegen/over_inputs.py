"""Kernels that write over what they read, where a region would copy their results there: `p.copy_(new)` after a kernel
that makes `new` of `p`, as of an optimiser's step. The results are then neither allocated nor copied.

Where the text of a kernel does not show that this is the same (triton_text/same_places.py), the copies stay.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace

from mugraph.codegen.launcher import launcher_text
from mugraph.codegen.written_at_once import may_write
from mugraph.ir.calls import Call, Ref, TensorInfo, operands
from mugraph.ir.kernel import KernelSource
from mugraph.ir.region import PlainCalls, Region, SearchUnit
from mugraph.ir.tensors import Tensor
from mugraph.plans.plan import KernelStep, RegionPlan
from mugraph.triton_text.same_places import stores_last, why_not_over

_STORE, _DATA = "Tensor.copy_", "Tensor.data.__get__"
Sources = Mapping[str, KernelSource]


@dataclass(frozen=True)
class _Copy:
    """Of a kernel's result to what the kernel has read. calls: that make it; target: what they write to"""

    calls: tuple[Call, ...]
    target: int
    written: str
    read: str


@dataclass(frozen=True)
class Write:
    """By value numbers: a kernel's result, the live-in that it is written over, and what that is afterwards. counted:
    whether its version counter is to say so"""

    result: int
    stored: int
    after: int
    counted: bool


def over_inputs(plan: RegionPlan, sources: Sources) -> tuple[RegionPlan, dict[str, KernelSource]]:
    """The plan and its kernels, which write over what they read where that may be."""
    found, region = dict(sources), plan.region
    if not region.stored or region.dynamic is not None or region.relaid is not None:
        return plan, found
    kernels = [step.kernel.name for step in plan.steps if isinstance(step, KernelStep)]
    over: dict[int, list[_Copy]] = {}
    for at, step in enumerate(plan.steps):
        if isinstance(step, KernelStep) and kernels.count(step.kernel.name) == 1:
            copies = [one for value in step.unit.outputs.values() if (one := _copy_of(plan, step, value)) is not None]
            made = _writing_over(found[step.kernel.name], region, step.unit, copies)
            if made is not None:
                found[step.kernel.name], over[at] = made, [one for one in copies if one.written in made.over]
    gone = {id(call) for copies in over.values() for copy in copies for call in copy.calls}
    steps: list[KernelStep | PlainCalls] = []
    for at, step in enumerate(plan.steps):
        if isinstance(step, KernelStep):
            steps.append(replace(step, over={**step.over, **{copy.written: copy.read for copy in over.get(at, ())}}))
        elif calls := tuple(call for call in step.calls if id(call) not in gone):
            steps.append(PlainCalls(calls))
    return replace(plan, steps=tuple(_at_once(region, steps))), found


def _at_once(region: Region, steps: Sequence[KernelStep | PlainCalls]) -> list[KernelStep | PlainCalls]:
    """The steps, in which PyTorch writes at once what it would compute and copy, as `self.count += 1` does."""
    plain = [call for step in steps if isinstance(step, PlainCalls) for call in step.calls]
    makers = {value: call for call in plain for value in call.outputs}
    read = [value for call in plain for value in operands(call)]
    read += [value for step in steps if isinstance(step, KernelStep) for value in step.unit.inputs.values()]
    read += [live_out.value for live_out in region.live_outs]
    writes: dict[int, Call] = {}
    gone: set[int] = set()
    for copy in plain:
        if copy.target != _STORE or operands(copy)[0] not in region.stored or len(operands(copy)) != 2:
            continue
        target, value = operands(copy)
        maker = makers.get(value)
        if maker is None or read.count(value) != 1 or not may_write(maker) or maker.args[0] != Ref(target):
            continue
        if region.stored.isdisjoint(operands(maker)[1:]):  # what has been written to by then is no operand
            writes[id(copy)] = replace(maker, target=f"{maker.target}_", outputs=copy.outputs)
            gone.add(id(maker))
    found: list[KernelStep | PlainCalls] = []
    for step in steps:
        if isinstance(step, KernelStep):
            found.append(step)
        elif calls := tuple(writes.get(id(call), call) for call in step.calls if id(call) not in gone):
            found.append(PlainCalls(calls))
    return found


def writes_over(plan: RegionPlan) -> tuple[Write, ...]:
    """What the plan's kernels write over."""
    found: list[Write] = []
    kernels = [step for step in plan.steps if isinstance(step, KernelStep)]
    for step in kernels:
        for written, read in step.over.items():
            value, stored = step.unit.outputs[written], step.unit.inputs[read]
            (copy,) = (one for one in plan.region.calls if one.target == _STORE and one.args[1:] == (Ref(value),))
            found.append(Write(value, stored, copy.outputs[0], counted=copy.args[0] == Ref(stored)))
    return tuple(found)


def _copy_of(plan: RegionPlan, step: KernelStep, value: int) -> _Copy | None:
    """What copies a result of the step, which nothing else reads, to what nothing but the step reads."""
    plain = [call for one in plan.steps if isinstance(one, PlainCalls) for call in one.calls]
    units = [one.unit for one in plan.steps if isinstance(one, KernelStep)]
    users = [call for call in plain if value in operands(call)]
    if len(users) != 1 or users[0].target != _STORE or users[0].args[1:] != (Ref(value),) or users[0].kwargs:
        return None
    if value in {out.value for out in plan.region.live_outs} or any(value in unit.inputs.values() for unit in units):
        return None
    (target,) = (one for one in users[0].args[:1] if isinstance(one, Ref))
    data = [call for call in plain if call.target == _DATA and call.outputs == (target.value,)]
    stored = operands(data[0])[0] if data else target.value
    calls = (*data, *users)
    readers = [name for unit in units for name, one in unit.inputs.items() if one == stored]
    own = [name for name, one in step.unit.inputs.items() if one == stored]
    also = [call for call in plain if call not in calls and not {stored, target.value}.isdisjoint(operands(call))]
    if stored not in plan.region.stored or len(readers) != 1 or readers != own or also:
        return None
    (written,) = (name for name, one in step.unit.outputs.items() if one == value)
    return _Copy(calls, target.value, written, own[0])


def _writing_over(
    kernel: KernelSource, region: Region, unit: SearchUnit, copies: Sequence[_Copy]
) -> KernelSource | None:
    """The kernel that writes as many of its results where these copies would put them as may be."""
    one_launch = not (kernel.parts or kernel.joined or kernel.combined or kernel.launches or kernel.smaller)
    if not one_launch or kernel.library is not None or kernel.early or kernel.counters or kernel.scratch:
        return None
    pointers = {tensor.name: name for tensor, name in zip(kernel.tensors, kernel.pointers, strict=True)}
    inputs, outputs = ({tensor.name: tensor for tensor in own} for own in (kernel.inputs, kernel.outputs))
    try:
        jit = stores_last(kernel.jit)
    except ValueError:
        return None
    over: dict[str, str] = {}
    for copy in copies:
        result, argument = unit.outputs[copy.written], unit.inputs[copy.read]
        infos = region.values[result], region.values[argument]
        turned = unit.order_of(result) != tuple(range(len(infos[0].shape)))
        if turned or not _are_alike(outputs[copy.written], inputs[copy.read], *infos):
            continue
        if why_not_over(jit, {pointers[copy.written]: pointers[copy.read]}) is None:
            over[copy.written] = copy.read
    if not over:
        return None
    made = replace(kernel, jit=jit, over=over)
    return replace(made, launcher=launcher_text(kernel.name, [made]))


def _are_alike(written: Tensor, read: Tensor, result: TensorInfo, argument: TensorInfo) -> bool:
    """Whether the kernel has one and the same tensor at both ends, which is the region's."""
    same = (written.dims, written.strides) == (read.dims, read.strides) and not read.windows
    types = {written.dtype, read.dtype, result.dtype, argument.dtype}
    return same and len(types) == 1 and (result.shape, result.strides) == (argument.shape, argument.strides)
