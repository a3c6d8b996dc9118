"""Calls that count: arange, whose numbers are places along its one axis."""

from __future__ import annotations

from mugraph.ops.algebra.arguments import Arguments
from mugraph.ops.algebra.axes import AtomDims
from mugraph.ops.algebra.builder import Builder
from mugraph.ops.algebra.nodes import Node
from mugraph.ops.algebra.registry import lowers


@lowers("torch.arange", parameters="start end step dtype device layout requires_grad pin_memory")
def arange(b: Builder, args: Arguments, dims: AtomDims) -> Node:
    """start + step * place; one argument is the end."""
    start = args.number("start", 0.0) if args.has("end") else 0.0
    place = b.places.along(dims[0])
    return b.add(b.const(start), b.mul(b.const(args.number("step", 1.0)), place))
