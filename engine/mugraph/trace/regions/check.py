"""Checks that a region is the same function as the source it covers: its calls are run on numbers that a real run has
seen."""

from __future__ import annotations

import logging
import math
from collections.abc import Iterator, Mapping
from typing import TYPE_CHECKING

import torch

from mugraph.ir.numbers import NUMBER
from mugraph.ir.region import Region
from mugraph.ir.spelled import spelled
from mugraph.trace.regions.replay import replay
from mugraph.trace.run.gpu_answers import GPU, IS_ON

if TYPE_CHECKING:
    from mugraph.trace.regions.assemble import Assembled
    from mugraph.trace.regions.partition import Partition

_log = logging.getLogger("mugraph.trace")


_OF_CODE = ("_is", "_is_object", "_unchanged", "_runs", "_is_the", "_on_default_device", "_default_type")
"""Guards that compare code with code. Instrumented code is not equal to the original."""

_OF_PLACES = (f".device.type == {GPU!r}", *(f".{name} is {answer}" for name, answer in IS_ON.items()))
"""How guards end that ask where a tensor is. They hold on a GPU."""


def _taken(*_: object) -> bool:
    return True


def _number(value: float, *_: object) -> float:
    """A number that varies, as float32 has it."""
    return torch.tensor(value + 0.0, dtype=torch.float32).item()


def run_calls(region: Region, live_ins: Mapping[int, torch.Tensor]) -> dict[int, torch.Tensor]:
    """Every value of a region, from those of its live-ins."""
    with torch.no_grad():
        return replay(region.calls, live_ins)


def same(left: torch.Tensor, right: torch.Tensor) -> bool:
    """Whether two values are equal, but for the rounding that another memory layout may bring."""
    if left.shape != right.shape or left.dtype != right.dtype:
        return False
    if not left.dtype.is_floating_point:
        return torch.equal(left, right)
    tolerance = {torch.float16: 2e-3, torch.bfloat16: 2e-2, torch.float32: 1e-5}.get(left.dtype, 1e-10)
    return torch.allclose(left, right, rtol=tolerance, atol=tolerance, equal_nan=True)


def _evaluate(expression: str, scope: Mapping[str, object]) -> object:
    """The condition's value; None if it cannot be evaluated, which makes it neither a tensor nor true."""
    try:
        return eval(expression, dict(scope))
    except (NameError, AttributeError, LookupError, TypeError) as error:
        _log.info("the condition %s cannot be evaluated: %s", expression, error)
        return None


def _is_one(found: object, tensor: torch.Tensor) -> bool:
    """Whether what an expression gives is the tensor: the object, or another view of the same elements."""
    if isinstance(found, float):
        return found == tensor.item()
    if found is tensor or not isinstance(found, torch.Tensor):
        return found is tensor
    alike = (found.shape, found.stride(), found.dtype) == (tensor.shape, tensor.stride(), tensor.dtype)
    return alike and found._is_view() and found.data_ptr() == tensor.data_ptr()


def faults(found: Assembled) -> Iterator[str]:
    """What a region computes wrong, compared with what the original computed."""
    region, values = found.region, found.scope.values
    names = dict(found.unit.activation.steps[found.unit.first].names)
    place = f"{region.function}, line {region.range.start.line + 1}"
    old = {new: number for number, new in found.numbers.items()}
    scope = {**found.unit.activation.globals, **names, **dict.fromkeys(_OF_CODE, _taken)}
    scope |= {"_here": found.unit.activation.globals, "_math": math, NUMBER: _number, "_spelled": spelled}
    for named in region.live_ins:
        if not _is_one(_evaluate(named.expression, scope), values.tensor(old[named.value])):
            yield f"{place}: {named.expression} is not the tensor that the region reads"
    for guard in region.guards:
        if not guard.endswith(_OF_PLACES) and not _evaluate(guard, scope):
            yield f"{place}: the guard {guard} does not hold where it was found"
    given = {named.value: values.contents[old[named.value]].clone() for named in region.live_ins}
    computed = run_calls(region, given)
    for number, value in found.stores.items():
        if not same(computed[number], values.contents[value]):
            yield f"{place}: what is stored in value {number} differs when computed by the region's calls"
    for named in region.live_outs:
        if not same(computed[named.value], values.contents[old[named.value]]):
            yield f"{place}: {named.expression or 'the expression'} differs when computed by the region's calls"


def check_found(partition: Partition) -> Iterator[str]:
    for found in partition.kept():
        yield from faults(found)
