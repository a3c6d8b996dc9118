"""PyTorch's convolution as a pre-defined kernel: the product of a windowed tensor and a weight."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from math import prod

from mugraph.ir.tensors import Sizes, Tensor, contiguous_strides
from mugraph.ir.windows import Window


@dataclass(frozen=True, slots=True)
class ConvolutionCall:
    """`out = function(x, weight, None, stride, padding, dilation, groups)`.

    sizes: groups, and of each group's product of matrices rows, columns, and elements that are summed for each
    moved: elements read and written
    """

    function: str
    x: Tensor
    weight: Tensor
    out: Tensor
    stride: tuple[int, ...]
    padding: tuple[int, ...]
    dilation: tuple[int, ...]
    shape: tuple[int, ...]
    out_shape: tuple[int, ...]
    sizes: tuple[int, int, int, int]
    moved: int

    @property
    def allocates(self) -> bool:
        """It makes its output itself."""
        return True

    def text(self, names: Mapping[str, str]) -> str:
        """names: of the variables that hold the tensors."""
        x, weight, out = (names[tensor.name] for tensor in (self.x, self.weight, self.out))
        # A library may answer channels last; the next kernel reads row by row.
        view = "" if self.shape == self.out_shape else f".view({', '.join(map(str, self.out_shape))})"
        return f"{out} = {self._call(x, weight)}.contiguous(){view}"

    @property
    def is_sizeless(self) -> bool:
        """The call's text names no size of the batch, so it is right for others."""
        return self.shape == self.out_shape

    @property
    def shown(self) -> str:
        """For a person, by the tensors' own names; where it is written to is said beside it."""
        return self._call(self.x.name, self.weight.name)

    def _call(self, x: str, weight: str) -> str:
        groups = f", {self.sizes[0]}" if self.sizes[0] > 1 else ""
        return f"{self.function}({x}, {weight}, None, {self.stride}, {self.padding}, {self.dilation}{groups})"


def output_axes(x: Tensor, weight: Tensor) -> tuple[str, ...]:
    """Axes of the result as PyTorch leaves them in memory: batch, channels, positions."""
    rank = len(weight.dims) - 2
    batch = [axis for dim in x.dims[: -rank - 1] for axis in dim]
    return (*batch, *weight.dims[0], *(axis for dim in range(len(x.dims) - rank, len(x.dims)) for axis in _at(x, dim)))


def convolution_call(
    x: Tensor, weight: Tensor, out: Tensor, over: frozenset[str], sizes: Sizes
) -> ConvolutionCall | None:
    """The call that computes the product of `x` and `weight` over some axes, None where there is none."""
    rank = len(weight.dims) - 2
    channel = len(x.dims) - rank - 1
    if not 1 <= rank <= 3 or channel not in (0, 1) or weight.windows or out.windows:
        return None
    if not x.dtype == weight.dtype == out.dtype or out.strides != contiguous_strides(out.dims, sizes):
        return None
    c = weight.dims[1]
    of_group = len(x.dims[channel]) - len(c)
    group = x.dims[channel][:of_group]
    if x.dims[channel][of_group:] != c or weight.dims[0][: len(group)] != group or of_group < 0:
        return None
    windows = {window.dim: window for window in x.windows}
    if not windows.keys() <= set(range(channel + 1, len(x.dims))):
        return None
    steps: list[Window] = []
    for i in range(rank):
        dim = channel + 1 + i
        window = windows.get(dim, Window(dim, 0))
        # What PyTorch pads behind is what it pads before; less than a stride may be left over there.
        if window.split(x.dims[dim])[1] != weight.dims[2 + i] or not 0 <= window.rest + window.pad < window.stride:
            return None
        steps.append(window)
    taps = [axis for dim in weight.dims[2:] for axis in dim]
    if over != frozenset((*c, *taps)) or out.axes != output_axes(x, weight):
        return None
    shapes = [tensor.shape(sizes) for tensor in (x, weight, out)]
    positions = [prod(sizes[axis] for axis in _at(x, dim)) for dim in range(channel + 1, len(x.dims))]
    batch = x.shape(sizes)[:channel]
    groups = prod(sizes[axis] for axis in group)
    depth = prod(shapes[1][1:])
    return ConvolutionCall(
        f"torch.conv{rank}d",
        x,
        weight,
        out,
        tuple(window.stride for window in steps),
        tuple(window.pad for window in steps),
        tuple(window.dilation for window in steps),
        (*batch, shapes[1][0], *positions),
        shapes[2],
        (groups, shapes[1][0] // groups, prod((*batch, *positions)), depth),
        sum(prod(shape) for shape in shapes),
    )


def _at(x: Tensor, dim: int) -> tuple[str, ...]:
    """Axes of the positions along a dimension."""
    window = next((window for window in x.windows if window.dim == dim), Window(dim, 0))
    return window.split(x.dims[dim])[0]
