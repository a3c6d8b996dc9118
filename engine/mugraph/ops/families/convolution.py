"""Convolutions: products over channels and taps, of an input that is read through windows.

y[n, o, p, q] = sum over c, r, s of w[o, c, r, s] * x[n, c, p * stride + r * dilation - pad, ...]. With groups, the
channels are groups times channels of a group, and a group is a batch.
"""

from __future__ import annotations

from collections.abc import Sequence

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
    x, weight = args.ref("input"), args.ref("weight")
    shape = b.shape(weight)
    rank = len(shape) - 2
    batch, (channel, *places) = dims[: len(dims) - rank - 1], dims[len(dims) - rank - 1 :]
    groups = args.integer("groups", 1)
    group, out = b.atoms.regroup(channel, (groups, shape[0] // groups))
    c = b.fresh(shape[1], "c", 3)
    extents = b.shape(x)[len(b.shape(x)) - rank :]
    steps = [args.each(name, rank) for name in ("stride", "dilation")]
    taps = [b.fresh(size, letter, 3) for size, letter in zip(shape[2:], _TAPS[rank], strict=True)]
    read: list[AtomDim] = []
    windows: list[tuple[Window, AtomDim]] = []
    for i, (extent, place, tap) in enumerate(zip(extents, places, taps, strict=True)):
        b.atoms.suggest(place, "dpq"[3 - rank + i], 1)
        pad = _pads(args, shape[2:], steps[1])[i]
        stride, dilation = steps[0][i], steps[1][i] if tap else 1
        span = (b.atoms.elements(b.atoms.resolve(place)) - 1) * stride + (shape[2 + i] - 1) * dilation + 1
        window = Window(len(batch) + 1 + i, 0, stride, dilation, pad, extent + pad - span)
        read.append((*place, *tap))
        if window != Window(window.dim, 0) or tap:
            windows.append((window, tap))
    at = (*batch, (*group, *c), *read)
    if windows and rank == 3:
        raise NotLowerable("a convolution with a window in three dimensions is outside the fragment")
    loaded = b.windowed(x, at, windows) if windows else b.at(x, at)
    over = (*c, *(atom for tap in taps for atom in tap))
    y = b.dot(loaded, b.at(weight, ((*group, *out), c, *taps)), over)
    bias = args.optional("bias")
    return y if bias is None else b.add(y, b.at(bias, (channel,)))


def _pads(args: Arguments, kernel: Sequence[int], dilation: Sequence[int]) -> tuple[int, ...]:
    """Zeros before the first element of each dimension. "same" puts the larger half behind the last one."""
    given = args.get("padding")
    if given == "same":
        return tuple(step * (size - 1) // 2 for size, step in zip(kernel, dilation, strict=True))
    if isinstance(given, str) and given != "valid":
        raise NotLowerable(f"a convolution with padding {given!r} has no rule")
    return (0,) * len(kernel) if given == "valid" else args.each("padding", len(kernel), 0)
