"""Convolutions: products over channels and taps, of an input that is read through windows.

y[n, o, p, q] = sum over c, r, s of w[o, c, r, s] * x[n, c, p * stride + r * dilation - pad, ...]. With groups, the
channels are groups times channels of a group, and a group is a batch.

A transposed one is the gradient of that by its input: x[n, c, i] goes to the places i * stride + r * dilation - pad of
the output, with w[c, o, r]. Read from the output, that is a convolution of x with stride - 1 zeros after each element,
and of the taps from the last one to the first (Dumoulin and Visin, A guide to convolution arithmetic, section 4).
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace

from mugraph.ir.calls import Ref
from mugraph.ir.windows import Window
from mugraph.ops.algebra.arguments import Arguments
from mugraph.ops.algebra.axes import AtomDim, AtomDims
from mugraph.ops.algebra.builder import Builder
from mugraph.ops.algebra.nodes import Node
from mugraph.ops.algebra.refusals import NotLowerable
from mugraph.ops.algebra.registry import lowers

_TAPS = {1: "r", 2: "rs", 3: "trs"}


@lowers(
    "torch.conv1d", "torch.conv2d", "torch.conv3d", "torch.nn.functional.conv1d", "torch.nn.functional.conv2d",
    "torch.nn.functional.conv3d", parameters="input weight bias stride padding dilation groups", tf32="cudnn",
)  # fmt: skip
def convolution(b: Builder, args: Arguments, dims: AtomDims) -> Node:
    weight = args.ref("weight")
    outer, inner, *kernel = b.shape(weight)
    group, out = _groups(b, args, dims, kernel, outer // args.integer("groups", 1))
    c, taps = b.fresh(inner, "c", 3), _fresh(b, kernel)
    steps, dilations = (args.each(name, len(kernel)) for name in ("stride", "dilation"))
    windows = [
        Window(0, 0, step, dilation, pad)
        for step, dilation, pad in zip(steps, dilations, _pads(args, kernel, dilations), strict=True)
    ]
    loaded = _through(b, args.ref("input"), (*group, *c), dims, windows, taps)
    y = b.dot(loaded, b.at(weight, ((*group, *out), c, *taps)), (*c, *(atom for tap in taps for atom in tap)))
    return _biased(b, args, y, dims)


@lowers(
    *(f"{package}.conv_transpose{rank}d" for package in ("torch", "torch.nn.functional") for rank in (1, 2, 3)),
    parameters="input weight bias stride padding output_padding groups dilation", tf32="cudnn",
)  # fmt: skip
def transposed_convolution(b: Builder, args: Arguments, dims: AtomDims) -> Node:
    """The output's padding says how many of its last places there are, which is how long `dims` are."""
    weight = args.ref("weight")
    outer, inner, *kernel = b.shape(weight)
    group, out = _groups(b, args, dims, kernel, inner)
    c, taps = b.fresh(outer // args.integer("groups", 1), "c", 3), _fresh(b, kernel)
    dilations, strides = (args.each(name, len(kernel)) for name in ("dilation", "stride"))
    pads = [
        (size - 1) * dilation - pad
        for size, dilation, pad in zip(kernel, dilations, args.each("padding", len(kernel), 0), strict=True)
    ]
    if min(pads) < 0:
        raise NotLowerable("a transposed convolution that leaves out places that a whole kernel reaches has no rule")
    windows = [
        Window(0, 0, 1, dilation, pad, spread=spread)
        for dilation, pad, spread in zip(dilations, pads, strides, strict=True)
    ]
    loaded = _through(b, args.ref("input"), (*group, *c), dims, windows, taps)
    turned = (b.atoms.section(size, size - 1, -1, tap) if tap else tap for size, tap in zip(kernel, taps, strict=True))
    y = b.dot(loaded, b.at(weight, ((*group, *c), out, *turned)), (*c, *(atom for tap in taps for atom in tap)))
    return _biased(b, args, y, dims)


def _groups(
    b: Builder, args: Arguments, dims: AtomDims, kernel: Sequence[int], channels: int
) -> tuple[AtomDim, AtomDim]:
    """The result's channels, as groups of so many."""
    group, out = b.atoms.regroup(dims[-len(kernel) - 1], (args.integer("groups", 1), channels))
    return group, out


def _fresh(b: Builder, kernel: Sequence[int]) -> list[AtomDim]:
    """Atoms of the taps of each dimension of a kernel."""
    return [b.fresh(size, letter, 3) for size, letter in zip(kernel, _TAPS[len(kernel)], strict=True)]


def _through(
    b: Builder, x: Ref, channels: AtomDim, dims: AtomDims, windows: Sequence[Window], taps: Sequence[AtomDim]
) -> Node:
    """The input at channels, and at the places of a result through windows, with these taps.

    dims: of the result. windows: one for each dimension of places; which one, its taps and where it ends are filled in
    """
    rank = len(taps)
    extents, batch, places = b.shape(x)[-rank:], dims[: -rank - 1], dims[-rank:]
    read: list[AtomDim] = []
    found: list[tuple[Window, AtomDim]] = []
    for i, (extent, place, tap, window) in enumerate(zip(extents, places, taps, windows, strict=True)):
        b.atoms.suggest(place, "dpq"[3 - rank + i], 1)
        elements = {"place": b.atoms.elements(b.atoms.resolve(place)), "tap": b.atoms.elements(tap)}
        window = replace(window, dim=len(batch) + 1 + i, taps=1).of_extent(extent, ("place", "tap"), elements)
        window = replace(window, taps=0, dilation=window.dilation if tap else 1)
        read.append((*place, *tap))
        if window != Window(window.dim, 0) or tap:
            found.append((window, tap))
    at = (*batch, channels, *read)
    return b.windowed(x, at, found) if found else b.at(x, at)


def _biased(b: Builder, args: Arguments, y: Node, dims: AtomDims) -> Node:
    """Of each channel its own number is added."""
    bias = args.optional("bias")
    rank = len(b.shape(args.ref("weight"))) - 2
    return y if bias is None else b.add(y, b.at(bias, (dims[-rank - 1],)))


def _pads(args: Arguments, kernel: Sequence[int], dilation: Sequence[int]) -> tuple[int, ...]:
    """Zeros before the first element of each dimension. "same" puts the larger half behind the last one."""
    given = args.get("padding")
    if given == "same":
        return tuple(step * (size - 1) // 2 for size, step in zip(kernel, dilation, strict=True))
    if isinstance(given, str) and given != "valid":
        raise NotLowerable(f"a convolution with padding {given!r} has no rule")
    return (0,) * len(kernel) if given == "valid" else args.each("padding", len(kernel), 0)
