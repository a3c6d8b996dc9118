"""Reductions over whole dimensions: sums, and what is made of sums."""

from __future__ import annotations

import math
from collections.abc import Sequence

from mugraph.ops.algebra.arguments import Arguments
from mugraph.ops.algebra.axes import AtomDim, AtomDims
from mugraph.ops.algebra.builder import Builder
from mugraph.ops.algebra.counts import Count, count_along
from mugraph.ops.algebra.nodes import Node
from mugraph.ops.algebra.refusals import NotLowerable
from mugraph.ops.algebra.registry import canonical, lowers


def reduced(b: Builder, args: Arguments, dims: AtomDims, over: Sequence[int] | None) -> tuple[Node, AtomDim, Count]:
    """The operand before the reduction, the atoms it is reduced over, and how many elements those are.

    over: dimensions of the operand; None or () for all of them.
    """
    x = args.ref("input")
    shape = b.shape(x)
    gone = {dim % len(shape) for dim in over} if over and shape else set(range(len(shape)))
    left = iter([dim for i, dim in enumerate(dims) if i not in gone] if args.flag("keepdim") else dims)
    inner = [b.fresh(size, "k") if i in gone else next(left) for i, size in enumerate(shape)]
    atoms = tuple(atom for i in sorted(gone) for atom in inner[i])
    count = count_along(b, x, ((i, inner[i]) for i in sorted(gone)))
    return b.at(x, inner), atoms, count


@lowers("torch.sum", "Tensor.sum", parameters="input dim|axis keepdim dtype")
def sum_(b: Builder, args: Arguments, dims: AtomDims) -> Node:
    x, over, _ = reduced(b, args, dims, args.integers("dim"))
    return b.sum(x, over)


@lowers("torch.mean", "Tensor.mean", parameters="input dim|axis keepdim dtype")
def mean(b: Builder, args: Arguments, dims: AtomDims) -> Node:
    return average(b, *reduced(b, args, dims, args.integers("dim")))


def average(b: Builder, x: Node, over: AtomDim, count: Count) -> Node:
    return count.share(b, b.sum(x, over))


def variance(b: Builder, x: Node, over: AtomDim, count: Count, correction: float) -> Node:
    centred = b.sub(x, average(b, x, over, count))
    return count.share(b, b.sum(b.mul(centred, centred), over), correction)


@lowers("torch.var", "Tensor.var", parameters="input dim unbiased keepdim correction")
def var(b: Builder, args: Arguments, dims: AtomDims) -> Node:
    along, correction = spread(args)
    return variance(b, *reduced(b, args, dims, along), correction)


def spread(args: Arguments) -> tuple[Sequence[int] | None, float]:
    """Of a variance: the dimensions that it is along, and by how much less than their elements it divides."""
    flat = isinstance(args.get("dim"), bool)  # var(unbiased) and var(dim, ...) share their first position
    unbiased = args.flag("dim") if flat else args.flag("unbiased", True)
    return None if flat else args.integers("dim"), args.number("correction", 1.0 if unbiased else 0.0)


@lowers("torch.std", "Tensor.std", parameters="input dim unbiased keepdim correction")
def std(b: Builder, args: Arguments, dims: AtomDims) -> Node:
    return b.sqrt(var(b, args, dims))


def _euclidean(order: object) -> bool:
    return order is None or order == 2 or order == "fro"


def _length(b: Builder, x: Node, over: AtomDim, order: object) -> Node:
    """Of a vector, by the order of its norm: Euclidean, the sum of its elements' sizes, or the largest of these."""
    if order == math.inf:
        return b.amax(b.unary("abs", x), over)
    if order == 1:
        return b.sum(b.unary("abs", x), over)
    if not _euclidean(order):
        raise NotLowerable(
            "a norm that is neither Euclidean nor the sum or the largest of sizes is outside the fragment"
        )
    return b.sqrt(b.sum(b.mul(x, x), over))


@lowers("torch.linalg.vector_norm", parameters="input|x ord dim keepdim dtype")
def vector_norm(b: Builder, args: Arguments, dims: AtomDims) -> Node:
    x, over, _ = reduced(b, args, dims, args.integers("dim"))
    return _length(b, x, over, args.get("ord"))


@lowers("torch.norm", "Tensor.norm", "torch.linalg.norm", parameters="input|A p|ord dim keepdim dtype")
def norm(b: Builder, args: Arguments, dims: AtomDims) -> Node:
    order, over, x = args.get("p"), args.integers("dim"), args.ref("input")
    if canonical(args.call.target) == "torch.linalg.norm":
        # For a matrix, or over two dimensions, an order means a matrix norm: 2 is the spectral norm.
        count = len(over) if over is not None else len(b.shape(x))
        vector = count == 1 or (order is None and over is None) or (order in (None, "fro") and count == 2)
    else:
        vector = True
    if not vector:
        raise NotLowerable("a norm that is not Euclidean is outside the fragment")
    node, atoms, _ = reduced(b, args, dims, over)
    return _length(b, node, atoms, order)


@lowers("torch.var_mean", "torch.std_mean", parameters="input dim unbiased keepdim correction", several=True)
def with_mean(b: Builder, args: Arguments, dims: AtomDims) -> Node:
    """Two results: the second is the mean."""
    if args.call.outputs.index(args.output) == 1:
        over = None if isinstance(args.get("dim"), bool) else args.integers("dim")
        return average(b, *reduced(b, args, dims, over))
    return var(b, args, dims) if canonical(args.call.target) == "torch.var_mean" else std(b, args, dims)
