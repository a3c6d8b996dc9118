"""Maxima and minima, element by element and along dimensions, and the activations that are made of them.

A minimum is the negative of the maximum of negatives. NaN goes through all of them, in PyTorch as in the kernels
(torch.fmax and torch.fmin, which pass over it, have no rule).
"""

from __future__ import annotations

from mugraph.ir.calls import Ref
from mugraph.ops.algebra.arguments import Arguments
from mugraph.ops.algebra.axes import AtomDims
from mugraph.ops.algebra.builder import Builder
from mugraph.ops.algebra.nodes import Node
from mugraph.ops.algebra.refusals import NotLowerable
from mugraph.ops.algebra.registry import lowers
from mugraph.ops.families.reduce import reduced


def _negative(b: Builder, x: Node) -> Node:
    return b.mul(b.const(-1.0), x)


@lowers("torch.maximum", "Tensor.maximum", parameters="input other")
def maximum(b: Builder, args: Arguments, dims: AtomDims) -> Node:
    return b.maximum(b.broadcast(args.ref("input"), dims), b.broadcast(args.ref("other"), dims))


@lowers("torch.minimum", "Tensor.minimum", parameters="input other")
def minimum(b: Builder, args: Arguments, dims: AtomDims) -> Node:
    return b.minimum(b.broadcast(args.ref("input"), dims), b.broadcast(args.ref("other"), dims))


@lowers("torch.amax", "Tensor.amax", parameters="input dim keepdim")
def amax(b: Builder, args: Arguments, dims: AtomDims) -> Node:
    x, over, _ = reduced(b, args, dims, args.integers("dim"))
    return b.amax(x, over)


@lowers("torch.amin", "Tensor.amin", parameters="input dim keepdim")
def amin(b: Builder, args: Arguments, dims: AtomDims) -> Node:
    x, over, _ = reduced(b, args, dims, args.integers("dim"))
    return _negative(b, b.amax(_negative(b, x), over))


@lowers("torch.max", "Tensor.max", parameters="input dim|other keepdim", first_only=True)
def max_(b: Builder, args: Arguments, dims: AtomDims) -> Node:
    """Of two tensors, of all elements, or the values along a dimension (the places are a second result)."""
    return maximum(b, _with_other(args), dims) if isinstance(args.get("dim"), Ref) else amax(b, args, dims)


@lowers("torch.min", "Tensor.min", parameters="input dim|other keepdim", first_only=True)
def min_(b: Builder, args: Arguments, dims: AtomDims) -> Node:
    return minimum(b, _with_other(args), dims) if isinstance(args.get("dim"), Ref) else amin(b, args, dims)


def _with_other(args: Arguments) -> Arguments:
    return Arguments(args.call, ("input", "other"), args.output)


@lowers(
    "torch.clamp", "torch.clip", "Tensor.clamp", "Tensor.clamp_", "Tensor.clip", "Tensor.clip_",
    parameters="input min max",
)  # fmt: skip
def clamp(b: Builder, args: Arguments, dims: AtomDims) -> Node:
    """Not below `min`, then not above `max`: numbers or tensors."""
    x = b.broadcast(args.ref("input"), dims)
    if args.has("min"):
        x = b.maximum(x, b.broadcast(args.sized("min"), dims))
    if args.has("max"):
        x = b.minimum(x, b.broadcast(args.sized("max"), dims))
    return x


@lowers("torch.clamp_min", "Tensor.clamp_min", "Tensor.clamp_min_", parameters="input min")
def clamp_min(b: Builder, args: Arguments, dims: AtomDims) -> Node:
    return b.maximum(b.broadcast(args.ref("input"), dims), b.broadcast(args.sized("min"), dims))


@lowers("torch.clamp_max", "Tensor.clamp_max", "Tensor.clamp_max_", parameters="input max")
def clamp_max(b: Builder, args: Arguments, dims: AtomDims) -> Node:
    return b.minimum(b.broadcast(args.ref("input"), dims), b.broadcast(args.sized("max"), dims))


def _between(b: Builder, x: Node, low: float, high: float) -> Node:
    return b.minimum(b.maximum(x, b.const(low)), b.const(high))


@lowers("torch.nn.functional.hardtanh", "torch.nn.functional.hardtanh_", parameters="input min_val max_val inplace")
def hardtanh(b: Builder, args: Arguments, dims: AtomDims) -> Node:
    return _between(b, b.at(args.ref("input"), dims), args.number("min_val", -1.0), args.number("max_val", 1.0))


@lowers("torch.nn.functional.relu6", parameters="input inplace")
def relu6(b: Builder, args: Arguments, dims: AtomDims) -> Node:
    return _between(b, b.at(args.ref("input"), dims), 0.0, 6.0)


@lowers("torch.nn.functional.hardsigmoid", parameters="input inplace")
def hardsigmoid(b: Builder, args: Arguments, dims: AtomDims) -> Node:
    """relu6(x + 3) / 6."""
    shifted = b.add(b.at(args.ref("input"), dims), b.const(3.0))
    return b.div(_between(b, shifted, 0.0, 6.0), b.const(6.0))


@lowers("torch.nn.functional.hardswish", parameters="input inplace")
def hardswish(b: Builder, args: Arguments, dims: AtomDims) -> Node:
    """x relu6(x + 3) / 6."""
    return b.mul(b.at(args.ref("input"), dims), hardsigmoid(b, args, dims))


@lowers(
    "torch.nn.functional.leaky_relu", "torch.nn.functional.leaky_relu_", parameters="input negative_slope inplace",
)  # fmt: skip
def leaky_relu(b: Builder, args: Arguments, dims: AtomDims) -> Node:
    """x, or x times the slope below 0: the larger of the two for a slope up to 1."""
    slope = args.number("negative_slope", 0.01)
    if not 0.0 <= slope <= 1.0:
        raise NotLowerable("a leaky relu with a slope outside of 0 to 1 is outside the fragment")
    x = b.at(args.ref("input"), dims)
    return b.maximum(x, b.mul(b.const(slope), x))
