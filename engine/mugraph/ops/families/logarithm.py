"""Logarithms to other bases, of softmax and of sigmoid; and what is made of log(1 + exp(x))."""

from __future__ import annotations

from math import log

from mugraph.ir.calls import Ref
from mugraph.ir.ops import Kind
from mugraph.ops.algebra.arguments import Arguments
from mugraph.ops.algebra.axes import AtomDims
from mugraph.ops.algebra.builder import Builder
from mugraph.ops.algebra.nodes import Node
from mugraph.ops.algebra.refusals import NotLowerable
from mugraph.ops.algebra.registry import lowers
from mugraph.ops.algebra.rows import rows
from mugraph.ops.families.softmax import implicit_dim

_STRAIGHT = 20.0
"""Where PyTorch's softplus is its argument: the difference is less than a rounding of float32."""


@lowers("torch.log2", "Tensor.log2", "Tensor.log2_")
def log2(b: Builder, args: Arguments, dims: AtomDims) -> Node:
    return b.mul(b.const(1.0 / log(2.0)), b.log(b.at(args.ref("input"), dims)))


@lowers("torch.log10", "Tensor.log10", "Tensor.log10_")
def log10(b: Builder, args: Arguments, dims: AtomDims) -> Node:
    return b.mul(b.const(1.0 / log(10.0)), b.log(b.at(args.ref("input"), dims)))


def log_normalized_exp(b: Builder, x: Ref, dims: AtomDims, dim: int) -> Node:
    return b.sub(b.at(x, dims), b.log(rows(b, x, dims, dims[dim]).sum(b.exp)))


@lowers("torch.log_softmax", "torch.special.log_softmax", "Tensor.log_softmax", parameters="input dim dtype")
def log_softmax(b: Builder, args: Arguments, dims: AtomDims) -> Node:
    if not dims:
        raise NotLowerable("a softmax of one number is a constant")
    return log_normalized_exp(b, args.ref("input"), dims, args.integer("dim"))


@lowers("torch.nn.functional.log_softmax", parameters="input dim _stacklevel dtype")
def functional_log_softmax(b: Builder, args: Arguments, dims: AtomDims) -> Node:
    if args.has("dim") or not dims:
        return log_softmax(b, args, dims)
    return log_normalized_exp(b, args.ref("input"), dims, implicit_dim(dims))


def soft_plus(b: Builder, x: Node) -> Node:
    """log(1 + exp(x)), which is max(x, 0) + log(1 + exp(-|x|)): nothing in it overflows."""
    return b.add(b.unary("relu", x), b.opaque(Kind.LOG1P, b.opaque(Kind.DECAY, x)))


@lowers("torch.nn.functional.softplus", parameters="input beta threshold")
def softplus(b: Builder, args: Arguments, dims: AtomDims) -> Node:
    beta = args.number("beta", 1.0)
    if beta <= 0.0 or args.number("threshold", _STRAIGHT) < _STRAIGHT:
        raise NotLowerable("a softplus that is straight where it is curved is outside the fragment")
    x = b.mul(b.const(beta), b.at(args.ref("input"), dims))
    return b.mul(b.const(1.0 / beta), soft_plus(b, x))


@lowers("torch.nn.functional.mish", parameters="input inplace")
def mish(b: Builder, args: Arguments, dims: AtomDims) -> Node:
    """x tanh(softplus(x))."""
    x = b.at(args.ref("input"), dims)
    return b.mul(x, b.unary("tanh", soft_plus(b, x)))


@lowers("torch.nn.functional.logsigmoid")
def logsigmoid(b: Builder, args: Arguments, dims: AtomDims) -> Node:
    minus = b.const(-1.0)
    return b.mul(minus, soft_plus(b, b.mul(minus, b.at(args.ref("input"), dims))))


@lowers("torch.logaddexp", "Tensor.logaddexp", parameters="input other")
def logaddexp(b: Builder, args: Arguments, dims: AtomDims) -> Node:
    """log(exp(x) + exp(y)), which is y + log(1 + exp(x - y))."""
    x, y = b.broadcast(args.ref("input"), dims), b.broadcast(args.ref("other"), dims)
    return b.add(y, soft_plus(b, b.sub(x, y)))
