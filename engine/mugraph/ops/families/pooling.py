"""Pooling: sums and maxima over windows of the last dimensions.

y[n, c, p, q] is the mean, or the maximum, over r, s of x[n, c, p * stride + r * dilation - pad, ...]. Windows that
follow one another without a gap are blocks: their dimension is read as positions times taps, whatever computed it.
Others can only be read from memory, as a convolution reads its input. A mean has zeros where windows reach beyond the
tensor; a maximum has an element of the same window once more, which leaves it as it is.
"""

from __future__ import annotations

from math import prod

from mugraph.ir.windows import Window
from mugraph.ops.algebra.arguments import Arguments
from mugraph.ops.algebra.axes import AtomDim, AtomDims
from mugraph.ops.algebra.builder import Builder
from mugraph.ops.algebra.counts import Count, count_along
from mugraph.ops.algebra.nodes import Node
from mugraph.ops.algebra.refusals import NotLowerable
from mugraph.ops.algebra.registry import canonical, lowers
from mugraph.ops.families.reduce import average


def _rank(args: Arguments) -> int:
    """Of `max_pool2d`, 2."""
    return int(canonical(args.call.target).removesuffix("_with_indices")[-2])


def _windows(b: Builder, args: Arguments, dims: AtomDims, *, edge: bool) -> tuple[Node, AtomDim, tuple[int, ...]]:
    """The operand's elements in each window, the atoms of a window, and its extents.

    edge: where windows reach beyond the operand, are elements of theirs read again? Else zeros.
    """
    x, rank = args.ref("input"), _rank(args)
    kernel = args.each("kernel_size", rank)
    strides = args.each("stride", rank) if args.integers("stride") else kernel
    pads, dilations = args.each("padding", rank, 0), args.each("dilation", rank, 1)
    outer, places, extents = dims[:-rank], dims[-rank:], b.shape(x)[-rank:]
    taps = [b.fresh(size, "rst"[i], 3) for i, size in enumerate(kernel)]
    found: list[Window] = []
    for i, (place, extent, size) in enumerate(zip(places, extents, kernel, strict=True)):
        count = b.atoms.elements(b.atoms.resolve(place))
        stride, dilation = strides[i] if count > 1 else size, dilations[i] if size > 1 else 1
        rest = extent + pads[i] - (count - 1) * stride - (size - 1) * dilation - 1
        window = Window(len(outer) + i, 0, stride, dilation, pads[i], rest, edge=edge and (pads[i] > 0 or rest < 0))
        if not edge and rest < -pads[i]:
            raise NotLowerable("a mean in ceil_mode is outside the fragment")
        if edge and not _touch(window, count, size, extent):
            raise NotLowerable("a maximum over no element is outside the fragment")
        found.append(window)
    at = (*outer, *((*place, *tap) for place, tap in zip(places, taps, strict=True)))
    over = tuple(atom for tap in taps for atom in tap)
    blocks = [
        (one.stride, one.dilation, one.leaves) == (size, 1, False) for one, size in zip(found, kernel, strict=True)
    ]
    if all(blocks):
        parts = (b.atoms.section(extent, 0, 1, dim) for extent, dim in zip(extents, at[-rank:], strict=True))
        return b.at(x, (*outer, *parts)), over, kernel
    windows = [
        (one, tap) for one, tap, block in zip(found, taps, blocks, strict=True) if not block or one.rest
    ]  # a block without a rest is a dimension as it is
    return b.windowed(x, at, windows), over, kernel


def _touch(window: Window, positions: int, taps: int, extent: int) -> bool:
    """Does each position read an element, and is there one wherever it reaches beyond the tensor?"""
    starts = [position * window.stride - window.pad for position in range(positions)]
    read = (range(start, start + taps * window.dilation, window.dilation) for start in starts)
    return extent >= window.dilation and all(any(0 <= place < extent for place in places) for places in read)


@lowers(
    "torch.avg_pool1d", "torch.nn.functional.avg_pool1d", "torch.nn.functional.avg_pool2d",
    "torch.nn.functional.avg_pool3d",
    parameters="input kernel_size stride padding ceil_mode count_include_pad divisor_override",
)  # fmt: skip
def avg_pool(b: Builder, args: Arguments, dims: AtomDims) -> Node:
    if any(args.integers("padding") or ()) and not args.flag("count_include_pad", True):
        raise NotLowerable("a mean that leaves out the places beyond its tensor is outside the fragment")
    x, over, kernel = _windows(b, args, dims, edge=False)
    return average(b, x, over, Count(args.integer("divisor_override", prod(kernel))))


@lowers(
    "torch.max_pool1d", "torch.max_pool2d", "torch.max_pool3d", "torch.nn.functional.max_pool1d",
    "torch.nn.functional.max_pool2d", "torch.nn.functional.max_pool3d",
    "torch.nn.functional.max_pool1d_with_indices", "torch.nn.functional.max_pool2d_with_indices",
    "torch.nn.functional.max_pool3d_with_indices",
    parameters="input kernel_size stride padding dilation ceil_mode return_indices", first_only=True,
)  # fmt: skip
def max_pool(b: Builder, args: Arguments, dims: AtomDims) -> Node:
    x, over, _ = _windows(b, args, dims, edge=True)
    return b.amax(x, over)


def _parts(b: Builder, args: Arguments, dims: AtomDims) -> tuple[Node, AtomDim, Count]:
    """The operand in as many equal parts as there are results, the atoms of a part, and how many elements it has."""
    x, rank = args.ref("input"), _rank(args)
    outer, places = dims[:-rank], dims[-rank:]
    read: list[AtomDim] = []
    taps: list[AtomDim] = []
    for place, extent in zip(places, b.shape(x)[-rank:], strict=True):
        size, left = divmod(extent, b.atoms.elements(b.atoms.resolve(place)))
        if left:
            raise NotLowerable("adaptive pooling whose windows differ in size is outside the fragment")
        tap = b.fresh(size, "rst"[len(read)], 3)
        read.append((*place, *tap))
        taps.append(tap)
    over = tuple(atom for tap in taps for atom in tap)
    return b.at(x, (*outer, *read)), over, count_along(b, x, enumerate(taps, len(outer)))


@lowers(
    "torch.adaptive_avg_pool1d", "torch.nn.functional.adaptive_avg_pool1d", "torch.nn.functional.adaptive_avg_pool2d",
    "torch.nn.functional.adaptive_avg_pool3d", parameters="input output_size",
)  # fmt: skip
def adaptive_avg_pool(b: Builder, args: Arguments, dims: AtomDims) -> Node:
    return average(b, *_parts(b, args, dims))


@lowers(
    "torch.nn.functional.adaptive_max_pool1d", "torch.nn.functional.adaptive_max_pool2d",
    "torch.nn.functional.adaptive_max_pool3d", "torch.nn.functional.adaptive_max_pool1d_with_indices",
    "torch.nn.functional.adaptive_max_pool2d_with_indices", "torch.nn.functional.adaptive_max_pool3d_with_indices",
    parameters="input output_size return_indices", first_only=True,
)  # fmt: skip
def adaptive_max_pool(b: Builder, args: Arguments, dims: AtomDims) -> Node:
    x, over, _ = _parts(b, args, dims)
    return b.amax(x, over)
