"""Tensors whose numbers are written out in the code: `torch.tensor([0.1, 0.2])`, `x.new_tensor(range(n))`."""

from __future__ import annotations

from collections.abc import Iterator
from math import frexp

from mugraph.ir.calls import Argument
from mugraph.ir.dtypes import ELEMENTS, NARROW
from mugraph.ir.ops import Kind
from mugraph.ops.algebra.arguments import Arguments
from mugraph.ops.algebra.axes import AtomDim, AtomDims
from mugraph.ops.algebra.builder import Builder
from mugraph.ops.algebra.nodes import Node
from mugraph.ops.algebra.refusals import NotLowerable
from mugraph.ops.algebra.registry import lowers
from mugraph.ops.families.masking import where_holds

_MOST = 8
"""Numbers that are chosen among; more belong in memory."""


@lowers("torch.tensor", parameters="data dtype device **")
@lowers("Tensor.new_tensor", parameters="input data dtype device **")
def tensor(b: Builder, args: Arguments, dims: AtomDims) -> Node:
    data, dtype = args.get("data"), b.values[args.output].dtype
    if not all(_is_of(number, dtype) for number in _numbers(data)):
        raise NotLowerable(f"a number that {dtype} has not is outside the fragment")
    return _at(b, data, dims)


def _numbers(data: Argument) -> Iterator[float]:
    if isinstance(data, tuple):
        for one in data:
            yield from _numbers(one)
    elif isinstance(data, (int, float)):
        yield float(data)


def _is_of(number: float, dtype: str) -> bool:
    """Is it a number of the type? Those of float32 are what a kernel rounds it to as well."""
    mantissa, _ = frexp(number)
    return dtype not in NARROW or (mantissa * 2 / ELEMENTS[dtype].epsilon).is_integer()


def _at(b: Builder, data: Argument, dims: AtomDims) -> Node:
    """Of one number, of such as follow one another in equal steps, or of few."""
    if isinstance(data, (int, float)) and not dims:
        return b.const(float(data))
    if not isinstance(data, tuple) or not dims:
        raise NotLowerable("a tensor of what is no number is outside the fragment")
    if len(set(data)) == 1:
        return _at(b, data[0], dims[1:])
    if len(dims) == 1 and all(isinstance(one, (int, float)) for one in data):
        numbers = [float(one) for one in data if isinstance(one, (int, float))]
        step = numbers[1] - numbers[0]
        if all(number == numbers[0] + step * at and number.is_integer() for at, number in enumerate(numbers)):
            return b.add(b.const(numbers[0]), b.mul(b.const(step), b.places.along(dims[0])))
    if len(data) > _MOST:
        raise NotLowerable(f"a tensor of more than {_MOST} numbers that are written out is outside the fragment")
    return _chosen(b, [_at(b, one, dims[1:]) for one in data], dims[0])


def _chosen(b: Builder, numbers: list[Node], dim: AtomDim) -> Node:
    """The first number up to the second place, and so on."""
    found = numbers[0]
    for at, number in enumerate(numbers[1:], start=1):
        is_behind = b.opaque(Kind.GREATER_EQUAL, b.places.along(dim), b.const(float(at)))
        found = where_holds(b, is_behind, number, found)
    return found
