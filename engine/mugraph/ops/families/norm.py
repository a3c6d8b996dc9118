"""Normalisations: a value over the root of a mean square, along the axes it is asked for at."""

from __future__ import annotations

from mugraph.ir.calls import Ref
from mugraph.ops.algebra.arguments import Arguments, rounded
from mugraph.ops.algebra.axes import AtomDim, AtomDims
from mugraph.ops.algebra.builder import Builder
from mugraph.ops.algebra.counts import Count, count_along
from mugraph.ops.algebra.nodes import Node
from mugraph.ops.algebra.refusals import NotLowerable
from mugraph.ops.algebra.registry import lowers
from mugraph.ops.algebra.rows import rows

_EPSILON = 2.0**-23
"""What rms_norm adds when it is told nothing: float32's epsilon for 16-bit inputs as well, for it works in float32."""


def _affine(b: Builder, y: Node, weight: Ref | None, bias: Ref | None, dims: AtomDims) -> Node:
    if weight is not None:
        y = b.mul(y, b.at(weight, dims))
    return y if bias is None else b.add(y, b.at(bias, dims))


def _standardized(b: Builder, args: Arguments, dims: AtomDims, over: AtomDim, count: Count) -> Node:
    """(x - mean) / sqrt(variance + eps) along the atoms."""
    x, own = b.at(args.ref("input"), dims), rows(b, args.ref("input"), dims, over)
    mean = own.mean(count, lambda part: part)
    spread = own.mean(count, lambda part: _squared(b, b.sub(part, mean)))
    return b.div(b.sub(x, mean), b.sqrt(b.add(spread, b.const(args.number("eps", 1e-5)))))


def _last(b: Builder, x: Ref, inner: AtomDims) -> Count:
    """Elements along the last dimensions of x."""
    return count_along(b, x, enumerate(inner, len(b.shape(x)) - len(inner)))


def _squared(b: Builder, x: Node) -> Node:
    return b.mul(x, x)


@lowers("torch.nn.functional.rms_norm", "torch.rms_norm", parameters="input normalized_shape weight eps")
def rms_norm(b: Builder, args: Arguments, dims: AtomDims) -> Node:
    x = args.ref("input")
    shape = args.integers("normalized_shape") or ()
    inner = dims[len(dims) - len(shape) :]
    over = tuple(atom for dim in inner for atom in dim)
    eps, count = args.number("eps", _EPSILON), _last(b, x, inner)
    mean_square = rows(b, x, dims, over).mean(count, lambda part: _squared(b, part))
    return _affine(
        b, b.div(b.at(x, dims), b.sqrt(b.add(mean_square, b.const(eps)))), args.optional("weight"), None, inner
    )


@lowers("torch.nn.functional.layer_norm", "torch.layer_norm", parameters="input normalized_shape weight bias eps cudnn")
def layer_norm(b: Builder, args: Arguments, dims: AtomDims) -> Node:
    shape = args.integers("normalized_shape") or ()
    inner = dims[len(dims) - len(shape) :]
    over = tuple(atom for dim in inner for atom in dim)
    y = _standardized(b, args, dims, over, _last(b, args.ref("input"), inner))
    return _affine(b, y, args.optional("weight"), args.optional("bias"), inner)


@lowers("torch.nn.functional.batch_norm", parameters="input running_mean running_var weight bias training momentum eps")
def batch_norm(b: Builder, args: Arguments, dims: AtomDims) -> Node:
    """In eval mode: the statistics are inputs."""
    if args.flag("training"):
        raise NotLowerable("batch norm in training writes its statistics")
    channel = (dims[1],)
    mean, var = b.at(args.ref("running_mean"), channel), b.at(args.ref("running_var"), channel)
    centred = b.sub(b.at(args.ref("input"), dims), mean)
    y = b.div(centred, b.sqrt(b.add(var, b.const(args.number("eps", 1e-5)))))
    return _affine(b, y, args.optional("weight"), args.optional("bias"), channel)


@lowers("torch.nn.functional.group_norm", "torch.group_norm", parameters="input num_groups weight bias eps cudnn")
def group_norm(b: Builder, args: Arguments, dims: AtomDims) -> Node:
    """Statistics over a group of channels and all positions; input [n, c, ...]."""
    x, groups = args.ref("input"), args.integer("num_groups")
    _, members = b.atoms.regroup(dims[1], (groups, b.shape(x)[1] // groups))
    over = (*members, *(atom for dim in dims[2:] for atom in dim))
    y = _standardized(b, args, dims, over, count_along(b, x, enumerate((members, *dims[2:]), 1)))
    return _affine(b, y, args.optional("weight"), args.optional("bias"), (dims[1],))


@lowers(
    "torch.nn.functional.instance_norm",
    parameters="input running_mean running_var weight bias use_input_stats momentum eps",
)
def instance_norm(b: Builder, args: Arguments, dims: AtomDims) -> Node:
    if not args.flag("use_input_stats", True):
        return batch_norm(b, args, dims)
    if args.has("running_mean"):
        raise NotLowerable("instance norm in training writes its statistics")
    over = tuple(atom for dim in dims[2:] for atom in dim)
    y = _standardized(b, args, dims, over, _last(b, args.ref("input"), dims[2:]))
    return _affine(b, y, args.optional("weight"), args.optional("bias"), (dims[1],))


@lowers("torch.nn.functional.normalize", parameters="input p dim eps")
def normalize(b: Builder, args: Arguments, dims: AtomDims) -> Node:
    """x over max(length, eps), where eps is what it is in x's type: in float16, 1e-12 is zero."""
    order = args.number("p", 2.0)
    if order not in (1.0, 2.0):
        raise NotLowerable("a norm that is neither Euclidean nor the sum of sizes is outside the fragment")
    if not dims:
        raise NotLowerable("the norm of a number is outside the fragment")
    ref = args.ref("input")
    along = rows(b, ref, dims, dims[args.integer("dim", 1)])
    if order == 1.0:
        length = along.sum(lambda part: b.unary("abs", part))
    else:
        length = b.sqrt(along.sum(lambda part: _squared(b, part)))
    eps = rounded(args.number("eps", 1e-12), b.values[ref.value].dtype)
    if eps > 0.0:
        length = b.maximum(length, b.const(eps))
    return b.div(b.at(ref, dims), length)
