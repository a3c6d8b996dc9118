"""What PyTorch's convolutions of either direction share as pre-defined kernels: tensors of channels and places.

cuDNN's kernels for the tensor cores read and write channels last. Of a tensor in the usual order it turns operands and
result around itself, in kernels of their own; so channels last is computed with where the next kernel reads it.
Measured on an H200 (float32, ten convolutions of KernelBench's sizes, the operand's copy counted): 1.1 to 1.4 times
faster with several taps; with one tap, which is a product of matrices as it lies, or with groups, nothing is gained.
"""

from __future__ import annotations

from collections.abc import Callable, Collection
from dataclasses import dataclass
from math import prod

from mugraph.ir.block import BlockGraph
from mugraph.ir.library.call import LibraryCall, Product, View, dense, held_bytes, vector_of
from mugraph.ir.library.record import LoneProduct, Orders
from mugraph.ir.ops import Kind, Op
from mugraph.ir.program import TensorProgram
from mugraph.ir.tensors import Sizes, Tensor, contiguous_strides
from mugraph.ir.windows import Window

_FORMATS = {2: "torch.channels_last"}
"""By the number of dimensions of places. (In three dimensions nothing was measured.)"""


@dataclass(frozen=True, slots=True)
class Convolution:
    """A product of a tensor and a weight over channels and taps.

    x:        its dimensions are a batch, or none, channels, and those of places
    weight:   its dimensions are two of channels, and those of taps
    group:    axes of x's channels that the result has as well
    channels: axes of the result's channels, those of groups first
    windows:  of each dimension of places
    """

    x: Tensor
    weight: Tensor
    group: tuple[str, ...]
    channels: tuple[str, ...]
    windows: tuple[Window, ...]

    @property
    def rank(self) -> int:
        """Dimensions of places."""
        return len(self.windows)

    @property
    def has_batch(self) -> bool:
        return len(self.x.dims) > self.rank + 1

    @property
    def places(self) -> tuple[tuple[str, ...], ...]:
        """Axes of the result's places, of each dimension."""
        return tuple(window.split(self.x.dims[window.dim])[0] for window in self.windows)

    @property
    def axes(self) -> tuple[str, ...]:
        """Of the result as PyTorch leaves it in memory: batch, channels, places."""
        return (*self._batch, *self.channels, *(axis for dim in self.places for axis in dim))

    @property
    def channels_last(self) -> tuple[str, ...]:
        return (*self._batch, *(axis for dim in self.places for axis in dim), *self.channels)

    @property
    def _batch(self) -> tuple[str, ...]:
        return self.x.dims[0] if self.has_batch else ()

    @property
    def lies_last(self) -> bool:
        """Lies the tensor channels last?"""
        return self.has_batch and self.x.strides[1] == 1 and self.x.strides[-1] > 1

    def taps(self, sizes: Sizes) -> int:
        return prod(self.weight.shape(sizes)[2:])

    def prefers_channels_last(self, sizes: Sizes) -> bool:
        """Whether it is computed faster so, or the tensor lies so already."""
        if self.rank not in _FORMATS or not self.has_batch:
            return False
        return self.lies_last or (self.taps(sizes) > 1 and not self.group)


def windowed_of(x: Tensor, weight: Tensor, over: Collection[str], *, transposed: bool = False) -> Convolution | None:
    """The product of both as a convolution, by how channels and taps lie; None where it is none. What its windows are
    is left to see.

    transposed: has the weight x's channels first?
    """
    rank = len(weight.dims) - 2
    channel = len(x.dims) - rank - 1
    if not 1 <= rank <= 3 or channel not in (0, 1):
        return None
    own = {window.dim: window for window in x.windows}
    dims = range(channel + 1, len(x.dims))
    windows = tuple(own.get(dim, Window(dim, 0)) for dim in dims)
    if not own.keys() <= set(dims):
        return None
    taps = [window.split(x.dims[window.dim])[1] for window in windows]
    group = tuple(axis for axis in x.dims[channel] if axis not in over)
    c = x.dims[channel][len(group) :]
    if taps != [*weight.dims[2:]] or {*over} != {*c, *(axis for tap in taps for axis in tap)}:
        return None
    first, second = weight.dims[:2]
    if transposed:
        return Convolution(x, weight, group, (*group, *second), windows) if first == (*group, *c) else None
    return Convolution(x, weight, group, first, windows) if second == c and first[: len(group)] == group else None


def of_product(product: LoneProduct, *, transposed: bool = False) -> Convolution | None:
    """With either operand as the weight."""
    sides = (product.left, product.right), (product.right, product.left)
    found = (windowed_of(x, weight, product.over, transposed=transposed) for x, weight in sides)
    return next((one for one in found if one is not None), None)


def orders_of(
    program: TensorProgram, op: Op, matched: Callable[[Convolution, Sizes], bool], *, transposed: bool = False
) -> Orders:
    """Of the product of a windowed tensor and a weight as they are loaded."""
    operands = [program.op(name) for name in op.inputs]
    if not op.kind.contracts or any(operand.kind is not Kind.LOAD for operand in operands):
        return ()
    left, right = (program.tensor(operand.tensor) for operand in operands)
    product = LoneProduct(left, right, left, frozenset(op.over))
    found = of_product(product, transposed=transposed)
    if found is None or not matched(found, program.sizes):
        return ()
    if not found.prefers_channels_last(program.sizes):
        return (found.axes,)
    return (found.channels_last,) if found.lies_last else (found.channels_last, found.axes)


def call_of(
    found: Convolution, product: LoneProduct, block: BlockGraph, function: str, of: Product, arguments: tuple[str, ...]
) -> LibraryCall | None:
    """`function(x, weight, bias, arguments)`; None where the result does not lie as it leaves it, or the bias is no
    vector of channels.

    of: what it computes
    """
    x, weight, out, sizes = found.x, found.weight, product.out, block.sizes
    if out.windows or out.strides != contiguous_strides(out.dims, sizes):
        return None
    last = found.rank in _FORMATS and found.has_batch and out.axes == found.channels_last != found.axes
    if not last and out.axes != found.axes:
        return None
    added = vector_of(product.bias, found.channels, sizes) if product.bias is not None else None
    if product.bias is not None and added is None:
        return None
    batch = x.shape(sizes)[:1] if found.has_batch else ()
    channels = prod(sizes[axis] for axis in found.channels)
    shape = (*batch, channels, *(prod(sizes[axis] for axis in dim) for dim in found.places))
    turns = out.dtype in ("f16", "bf16") and not found.lies_last and found.taps(sizes) > 1
    copied = (prod(x.shape(sizes)) + (0 if last else prod(shape))) if turns else 0
    # PyTorch adds the bias in a kernel of its own; its own kernels for a channel at a time start with it.
    copied += prod(shape) if added is not None and (of.matrices == 1 or of.depth > found.taps(sizes)) else 0
    operands = (View.whole(x, sizes), View.whole(weight, sizes), *([added] if added is not None else []))
    return LibraryCall(
        function,
        operands,
        View(out, shape, dense(shape), out.shape(sizes)),
        (of,),
        moved=held_bytes((*operands, View.whole(out, sizes))),
        arguments=(*(() if added is not None else ("None",)), *arguments),
        allocates=True,
        copied=copied,
        tf32="cudnn" if product.tf32 == "cudnn" else "",
        format=_FORMATS[found.rank] if last else "",
    )
