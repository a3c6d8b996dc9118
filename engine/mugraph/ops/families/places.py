"""Tensors made of nothing: of one number, and arange, whose numbers are places along its one axis."""

from __future__ import annotations

from mugraph.ops.algebra.arguments import Arguments
from mugraph.ops.algebra.axes import AtomDims
from mugraph.ops.algebra.builder import Builder, Rule
from mugraph.ops.algebra.nodes import Node
from mugraph.ops.algebra.registry import lowers


@lowers("torch.arange", parameters="start end step dtype device layout requires_grad pin_memory")
def arange(b: Builder, args: Arguments, dims: AtomDims) -> Node:
    """start + step * place; one argument is the end."""
    start = args.number("start", 0.0) if args.has("end") else 0.0
    place = b.places.along(dims[0])
    return b.add(b.const(start), b.mul(b.const(args.number("step", 1.0)), place))


def _filled(number: float | None) -> Rule:
    return lambda b, args, dims: b.const(args.number("fill_value") if number is None else number)


for _name, _size, _number in (("zeros", "*size", 0.0), ("ones", "*size", 1.0), ("full", "size fill_value", None)):
    lowers(f"torch.{_name}", parameters=f"{_size} **", truth=True)(_filled(_number))
    lowers(f"Tensor.new_{_name}", parameters=f"input {_size} **", truth=True)(_filled(_number))
    _rest = _size.removeprefix("*size").removeprefix("size")
    lowers(f"torch.{_name}_like", parameters=f"input{_rest} **", truth=True)(_filled(_number))
