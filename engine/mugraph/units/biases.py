"""The bias of a library's convolution as an addition of its own.

PyTorch adds it in a kernel of its own, one more pass over the result. As an addition it goes into the generated kernel
that computes with the result, as torch.compile has it too. Where no kernel takes it in, the call stays as it was
recorded.
"""

from __future__ import annotations

from collections.abc import Collection, Mapping, Sequence
from dataclasses import replace

from mugraph.ir.calls import Argument, Call, Ref, TensorInfo, operands
from mugraph.ir.region import Region
from mugraph.ops.algebra.registry import canonical, entry_for
from mugraph.trace.pytorch.biased import WINDOW_DIMS
from mugraph.trace.regions.value_names import value_names
from mugraph.units.growing import identifier_of
from mugraph.units.lower import NotLowerable, lower

_BIAS = 2
"""Its position among the arguments."""
_GROUPS = 6
"""Of what is not transposed."""
_SUM = "torch.add"


def with_biases_apart(region: Region, left: Collection[int] = ()) -> Region:
    """The region with the biases of convolutions that PyTorch runs added after them. Its values keep their numbers.

    A region for a range of sizes stays as it is.

    left: results of convolutions that are left to PyTorch, beside those that have no rule
    """
    if region.dynamic is not None or not any(canonical(call.target) in WINDOW_DIMS for call in region.calls):
        return region
    values, calls = dict(region.values), list[Call]()
    recorded = [value for call in region.calls for value in (*operands(call), *call.outputs)]
    number = 1 + max((*recorded, *(live.value for live in region.live_ins)))  # the same in each cut of the region
    for call in region.calls:
        bias = _bias(call)
        if bias is None or not _adds_it_alone(call, values) or not is_pytorchs(call, region, left):
            calls.append(call)
        else:
            calls += _apart(call, bias, values, number)
            number += 2
    return replace(region, calls=tuple(calls), values=values)


def without_biases(region: Region, apart: Region) -> dict[int, int]:
    """Of convolutions whose bias is apart: the result that was recorded -> the one without the bias."""
    recorded = {call.outputs for call in region.calls if _bias(call) is not None}
    return {
        call.outputs[0]: operands(call)[0] for call in apart.calls if call.target == _SUM and call.outputs in recorded
    }


def with_biases_back(region: Region, plain: Sequence[Sequence[Call]]) -> list[tuple[Call, ...]]:
    """Calls that PyTorch runs, step by step, with additions of biases among them back in their convolutions.

    region: as recorded
    """
    recorded = {call.outputs: call for call in region.calls if _bias(call) is not None}
    back: dict[int, Call] = {}
    gone: set[int] = set()
    sums: list[Call] = []
    for call in (call for step in plain for call in step):
        whole = recorded.get(call.outputs)
        if whole is not None and call != whole and call.target == _SUM:
            alone, along = operands(call)
            back[alone] = whole
            gone.add(along)
            sums.append(call)
    # What is written in place afterwards has the number of the sum as well.
    kept = [[call for call in step if call not in sums and gone.isdisjoint(call.outputs)] for step in plain]
    return [tuple(back.get(next(iter(call.outputs), -1), call) for call in step) for step in kept]


def _bias(call: Call) -> int | None:
    """The value, where the call is a convolution with one."""
    if canonical(call.target) not in WINDOW_DIMS or len(call.outputs) != 1:
        return None
    given = argument(call, _BIAS, "bias")
    return given.value if isinstance(given, Ref) else None


def argument(call: Call, position: int, name: str) -> Argument:
    """Of a call, by its position or its name."""
    return call.args[position] if len(call.args) > position else call.kwargs.get(name)


def groups_of(call: Call) -> Argument:
    """Of a convolution."""
    return argument(call, _GROUPS, "groups") or 1


def _adds_it_alone(call: Call, values: Mapping[int, TensorInfo]) -> bool:
    """Does PyTorch add the bias to a result that is rounded already, all of one type? Its own depthwise kernels start
    with the bias, and round once."""
    weight, groups = argument(call, 1, "weight"), groups_of(call)
    if not isinstance(weight, Ref) or any(value not in values for value in (*operands(call), *call.outputs)):
        return False
    is_depthwise = groups != 1 and values[weight.value].shape[1:2] == (1,) and "transpose" not in call.target
    return not is_depthwise and len({values[value].dtype for value in (*operands(call), *call.outputs)}) == 1


def _apart(call: Call, bias: int, values: dict[int, TensorInfo], number: int) -> tuple[Call, ...]:
    """The convolution, the bias along its channels, and their sum, which has the call's number.

    values: gets what is known of the first two. number: of the first of them
    """
    (out,) = call.outputs
    alone, along = number, number + 1
    info, dims = values[out], WINDOW_DIMS[canonical(call.target)]
    shape = (*values[bias].shape, *[1] * dims)
    values[alone] = info
    values[along] = replace(values[bias], shape=shape, strides=(*values[bias].strides, *[1] * dims), triangle=None)
    args = tuple(None if number == _BIAS else one for number, one in enumerate(call.args))
    kwargs = {name: None if name == "bias" else one for name, one in call.kwargs.items()}
    return (
        replace(call, args=args, kwargs=kwargs, outputs=(alone,)),
        Call("Tensor.view", (Ref(bias), *shape), {}, (along,), call.range),
        Call(_SUM, (Ref(alone), Ref(along)), {}, (out,), call.range),
    )


def is_pytorchs(call: Call, region: Region, left: Collection[int]) -> bool:
    """Whether no rule says what the call computes, or it is left to PyTorch: no search unit holds it."""
    return any(value in left for value in call.outputs) or not _has_program(call, region)


def _has_program(call: Call, region: Region) -> bool:
    if entry_for(call.target) is None:
        return False
    names, name = value_names(region), identifier_of(region)
    try:
        lower([call], region.values, region.live_ins, call.outputs, name, names, region.names.keys())
    except NotLowerable:
        return False
    return True
