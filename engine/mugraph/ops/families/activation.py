"""Activations made of others: of the sign of their argument, of exponentials, of tanh."""

from __future__ import annotations

from mugraph.ir.ops import Kind
from mugraph.ops.algebra.arguments import Arguments
from mugraph.ops.algebra.axes import AtomDims
from mugraph.ops.algebra.builder import Builder
from mugraph.ops.algebra.nodes import Node
from mugraph.ops.algebra.refusals import NotLowerable
from mugraph.ops.algebra.registry import lowers
from mugraph.ops.families.logical import above
from mugraph.ops.families.masking import where_holds
from mugraph.ops.families.slices import part

_SELU_ALPHA, _SELU_SCALE = 1.6732632423543772, 1.0507009873554805


def below_zero(b: Builder, x: Node) -> Node:
    """min(x, 0)."""
    minus = b.const(-1.0)
    return b.mul(minus, b.unary("relu", b.mul(minus, x)))


def _exponential(b: Builder, x: Node, alpha: float, slope: float = 1.0) -> Node:
    """x, below zero alpha (exp(slope x) - 1)."""
    curve = b.opaque(Kind.EXPM1, b.mul(b.const(slope), below_zero(b, x)))
    return b.add(b.unary("relu", x), b.mul(b.const(alpha), curve))


@lowers("torch.nn.functional.elu", "torch.nn.functional.elu_", parameters="input alpha inplace")
def elu(b: Builder, args: Arguments, dims: AtomDims) -> Node:
    return _exponential(b, b.at(args.ref("input"), dims), args.number("alpha", 1.0))


@lowers(
    "torch.nn.functional.selu", "torch.nn.functional.selu_", "torch.selu", "torch.selu_", parameters="input inplace",
)  # fmt: skip
def selu(b: Builder, args: Arguments, dims: AtomDims) -> Node:
    return b.mul(b.const(_SELU_SCALE), _exponential(b, b.at(args.ref("input"), dims), _SELU_ALPHA))


@lowers(
    "torch.nn.functional.celu", "torch.nn.functional.celu_", "torch.celu", "torch.celu_",
    parameters="input alpha inplace",
)  # fmt: skip
def celu(b: Builder, args: Arguments, dims: AtomDims) -> Node:
    alpha = args.number("alpha", 1.0)
    if alpha <= 0.0:
        raise NotLowerable("a celu whose alpha is not positive is outside the fragment")
    return _exponential(b, b.at(args.ref("input"), dims), alpha, 1.0 / alpha)


@lowers("torch.nn.functional.softsign")
def softsign(b: Builder, args: Arguments, dims: AtomDims) -> Node:
    x = b.at(args.ref("input"), dims)
    return b.div(x, b.add(b.unary("abs", x), b.const(1.0)))


@lowers("torch.nn.functional.tanhshrink")
def tanhshrink(b: Builder, args: Arguments, dims: AtomDims) -> Node:
    x = b.at(args.ref("input"), dims)
    return b.sub(x, b.unary("tanh", x))


@lowers("torch.nn.functional.softshrink", "torch.softshrink", parameters="input lambd")
def softshrink(b: Builder, args: Arguments, dims: AtomDims) -> Node:
    """x less what of it is within the limits."""
    x, limit = b.at(args.ref("input"), dims), args.number("lambd", 0.5)
    return b.sub(x, b.minimum(b.maximum(x, b.const(-limit)), b.const(limit)))


@lowers("torch.nn.functional.hardshrink", "torch.hardshrink", parameters="input lambd")
def hardshrink(b: Builder, args: Arguments, dims: AtomDims) -> Node:
    x, limit = b.at(args.ref("input"), dims), args.number("lambd", 0.5)
    return where_holds(b, above(b, b.unary("abs", x), b.const(limit)), x, b.const(0.0))


@lowers(
    "torch.nn.functional.threshold", "torch.nn.functional.threshold_", "torch.threshold", "torch.threshold_",
    parameters="input threshold value inplace",
)  # fmt: skip
def threshold(b: Builder, args: Arguments, dims: AtomDims) -> Node:
    x = b.at(args.ref("input"), dims)
    holds = above(b, x, b.const(args.number("threshold")))
    return where_holds(b, holds, x, b.const(args.number("value")))


@lowers("torch.nn.functional.prelu", "torch.prelu", "Tensor.prelu", parameters="input weight")
def prelu(b: Builder, args: Arguments, dims: AtomDims) -> Node:
    """x, below zero times a weight: one, or one for each channel."""
    x, weight = b.at(args.ref("input"), dims), args.ref("weight")
    (count,) = b.shape(weight) or (1,)
    of = b.at(weight, ((),) * len(b.shape(weight)) if count == 1 else (dims[1],))
    return b.add(b.unary("relu", x), b.mul(of, below_zero(b, x)))


@lowers("torch.sign", "torch.sgn", "Tensor.sign", "Tensor.sgn")
def sign(b: Builder, args: Arguments, dims: AtomDims) -> Node:
    x, zero = b.at(args.ref("input"), dims), b.const(0.0)
    return b.sub(above(b, x, zero), above(b, zero, x))


@lowers("torch.nn.functional.glu", parameters="input dim")
def glu(b: Builder, args: Arguments, dims: AtomDims) -> Node:
    """The first half along a dimension, times the sigmoid of the second."""
    x, dim = args.ref("input"), args.integer("dim", -1) % len(dims)
    gate = part(b, x, dims, dim, b.shape(x)[dim] // 2)
    return b.mul(part(b, x, dims, dim, 0), b.unary("sigmoid", gate))
