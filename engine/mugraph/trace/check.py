"""Is a region the same function as the source it covers? Its calls are run on the numbers a real run has seen."""

from __future__ import annotations

import operator
from collections.abc import Callable, Iterator, Mapping
from typing import TYPE_CHECKING, cast

import torch

from mugraph.trace.arguments import DEVICE
from mugraph.trace.region import Argument, Ref, Region, Symbol

if TYPE_CHECKING:
    from mugraph.trace.assemble import Assembled
    from mugraph.trace.partition import Partition


def function_of(target: str) -> Callable[..., object]:
    """The callable that a Call's target names. Raises AttributeError if there is none in this version of PyTorch."""
    root, _, path = target.partition(".")
    return cast(Callable[..., object], operator.attrgetter(path)(torch.Tensor if root == "Tensor" else torch))


def _value(argument: Argument, values: Mapping[int, torch.Tensor], device: torch.device) -> object:
    if isinstance(argument, Ref):
        return values[argument.value]
    if isinstance(argument, Symbol):
        if argument == DEVICE:
            return device
        return Ellipsis if argument.name == "Ellipsis" else operator.attrgetter(argument.name.partition(".")[2])(torch)
    if isinstance(argument, tuple):
        return tuple(_value(item, values, device) for item in argument)
    if isinstance(argument, slice):
        parts = (argument.start, argument.stop, argument.step)
        return slice(*(_value(cast(Argument, part), values, device) for part in parts))
    return argument


def run_calls(region: Region, live_ins: Mapping[int, torch.Tensor]) -> dict[int, torch.Tensor]:
    """Every value of a region, from those of its live-ins."""
    values = dict(live_ins)
    device = next((tensor.device for tensor in live_ins.values()), torch.device("cpu"))
    with torch.no_grad():
        for call in region.calls:
            args = [_value(argument, values, device) for argument in call.args]
            kwargs = {name: _value(argument, values, device) for name, argument in call.kwargs.items()}
            out = function_of(call.target)(*args, **kwargs)
            results = [out] if isinstance(out, torch.Tensor) else list(cast("tuple[torch.Tensor, ...]", out))
            values.update(zip(call.outputs, results, strict=True))
    return values


def same(left: torch.Tensor, right: torch.Tensor) -> bool:
    """Equal but for the rounding that another memory layout may bring."""
    if left.shape != right.shape or left.dtype != right.dtype:
        return False
    if not left.dtype.is_floating_point:
        return torch.equal(left, right)
    tolerance = {torch.float16: 2e-3, torch.bfloat16: 2e-2, torch.float32: 1e-5}.get(left.dtype, 1e-10)
    return torch.allclose(left, right, rtol=tolerance, atol=tolerance, equal_nan=True)


def faults(found: Assembled, namespace: Mapping[str, object]) -> Iterator[str]:
    """What is wrong with a region, against what the original was seen to compute."""
    region, values = found.region, found.scope.values
    names = dict(found.unit.activation.steps[found.unit.first].names)
    place = f"{region.function}, line {region.range.start.line + 1}"
    old = {new: number for number, new in found.numbers.items()}
    scope = {**found.unit.activation.globals, **names}
    for named in region.live_ins:
        if not named.expression.isidentifier() and eval(named.expression, scope) is not values.tensor(old[named.value]):
            yield f"{place}: {named.expression} is not the tensor that the region reads"
    for guard in region.guards:
        if not eval(guard, scope):
            yield f"{place}: the guard {guard} does not hold where it was found"
    computed = run_calls(region, {named.value: values.contents[old[named.value]] for named in region.live_ins})
    for named in region.live_outs:
        if not same(computed[named.value], values.contents[old[named.value]]):
            yield f"{place}: {named.expression or 'the expression'} differs when computed by the region's calls"


def check_found(partition: Partition, namespace: Mapping[str, object]) -> Iterator[str]:
    for found in partition.kept():
        yield from faults(found, namespace)
