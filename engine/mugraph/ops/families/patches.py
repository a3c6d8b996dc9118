"""Patches of images, and windows of rows, that do not overlap and leave nothing out: the elements in another order."""

from __future__ import annotations

from mugraph.ops.algebra.arguments import Arguments
from mugraph.ops.algebra.axes import AtomDims
from mugraph.ops.algebra.builder import Builder
from mugraph.ops.algebra.nodes import Node
from mugraph.ops.algebra.refusals import NotLowerable
from mugraph.ops.algebra.registry import lowers


@lowers(
    "torch.nn.functional.unfold", parameters="input kernel_size dilation padding stride", shape_only=True,
)  # fmt: skip
def patches(b: Builder, args: Arguments, dims: AtomDims) -> Node:
    """[..., c, h r, w s] -> [..., c r s, h w]."""
    x = args.ref("input")
    *_, channels, height, width = b.shape(x)
    rows, columns = args.each("kernel_size", 2)
    apart = args.each("stride", 2) == (rows, columns) and not any(args.each("padding", 2, 0))
    if not apart or any(one != 1 for one in args.each("dilation", 2)) or height % rows or width % columns:
        raise NotLowerable("patches that overlap, or leave elements out, are outside the fragment")
    channel, i, j = b.atoms.regroup(dims[-2], (channels, rows, columns))
    down, across = b.atoms.regroup(dims[-1], (height // rows, width // columns))
    return b.at(x, (*dims[:-2], channel, (*down, *i), (*across, *j)))


@lowers("Tensor.unfold", parameters="input dimension size step", shape_only=True)
def windows(b: Builder, args: Arguments, dims: AtomDims) -> Node:
    """[..., n r, ...] -> [..., n, ..., r]."""
    x, size = args.ref("input"), args.integer("size")
    shape = b.shape(x)
    if not shape:
        raise NotLowerable("windows of a number are outside the fragment")
    at = args.integer("dimension") % len(shape)
    if args.integer("step") != size or shape[at] % size:
        raise NotLowerable("windows that overlap, or leave elements out, are outside the fragment")
    *inner, within = dims
    inner[at] = (*inner[at], *within)
    return b.at(x, inner)
