"""PyTorch's convolution as a pre-defined kernel: the product of a windowed tensor and a weight, maybe with a bias.

cuDNN's kernels for the tensor cores read and write channels last. Of a tensor in the usual order it turns operands and
result around itself, in kernels of their own; so channels last is computed with where the next kernel reads it.
Measured on an H200 (float32, ten convolutions of KernelBench's sizes, the operand's copy counted): 1.1 to 1.4 times
faster with several taps; with one tap, which is a product of matrices as it lies, or with groups, nothing is gained.
"""

from __future__ import annotations

from math import prod

from mugraph.ir.block import BlockGraph
from mugraph.ir.library.call import LibraryCall, Product, View, dense, held_bytes, vector_of
from mugraph.ir.library.record import Orders, PredefinedKernel, lone_product
from mugraph.ir.ops import Kind, Op
from mugraph.ir.program import TensorProgram
from mugraph.ir.tensors import Sizes, Tensor, contiguous_strides
from mugraph.ir.windows import Window


def orders(program: TensorProgram, op: Op) -> Orders:
    """Of the product of a windowed tensor and a weight as they are loaded."""
    operands = [program.op(name) for name in op.inputs]
    if not op.kind.contracts or any(operand.kind is not Kind.LOAD for operand in operands):
        return ()
    first, second = (program.tensor(operand.tensor) for operand in operands)
    if not (first.windows or second.windows):
        return ()
    x, weight = (first, second) if first.windows else (second, first)
    if not _prefers_channels_last(x, weight, program.sizes):
        return (_axes(x, weight),)
    last = _channels_last(x, weight)
    return (last,) if _is_channels_last(x) else (last, _axes(x, weight))


def _prefers_channels_last(x: Tensor, weight: Tensor, sizes: Sizes) -> bool:
    """Whether it is computed faster so, or `x` lies so already."""
    rank = len(weight.dims) - 2
    if rank not in _FORMATS or len(x.dims) != rank + 2:
        return False
    taps = prod(weight.shape(sizes)[2:])
    return _is_channels_last(x) or (taps > 1 and x.dims[1] == weight.dims[1])


def _is_channels_last(x: Tensor) -> bool:
    return x.strides[1] == 1 and x.strides[-1] > 1


def _channels_last(x: Tensor, weight: Tensor) -> tuple[str, ...]:
    batch, rest = list(x.dims[0]), _axes(x, weight)[len(x.dims[0]) :]
    channels = len(weight.dims[0])
    return (*batch, *rest[channels:], *rest[:channels])


_FORMATS = {2: "torch.channels_last"}
"""By the number of dimensions of a window. (Convolutions in three dimensions are outside the fragment.)"""


def _axes(x: Tensor, weight: Tensor) -> tuple[str, ...]:
    """Of the result as PyTorch leaves it in memory: batch, channels, positions."""
    rank = len(weight.dims) - 2
    batch = [axis for dim in x.dims[: -rank - 1] for axis in dim]
    return (*batch, *weight.dims[0], *(axis for dim in range(len(x.dims) - rank, len(x.dims)) for axis in _at(x, dim)))


def match(block: BlockGraph) -> LibraryCall | None:
    product = lone_product(block)
    if product is None or not (product.left.windows or product.right.windows):
        return None
    x, weight = (product.left, product.right) if product.left.windows else (product.right, product.left)
    out, over, sizes, bias = product.out, product.over, block.sizes, product.bias
    rank = len(weight.dims) - 2
    channel = len(x.dims) - rank - 1
    if not 1 <= rank <= 3 or channel not in (0, 1) or weight.windows or out.windows:
        return None
    if out.strides != contiguous_strides(out.dims, sizes):
        return None
    c = weight.dims[1]
    of_group = len(x.dims[channel]) - len(c)
    group = x.dims[channel][:of_group]
    if x.dims[channel][of_group:] != c or weight.dims[0][: len(group)] != group or of_group < 0:
        return None
    windows = {window.dim: window for window in x.windows}
    if not windows.keys() <= set(range(channel + 1, len(x.dims))) or any(
        window.edge or window.reverse for window in x.windows
    ):
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
    last = channel == 1 and rank in _FORMATS and out.axes == _channels_last(x, weight) != _axes(x, weight)
    if over != frozenset((*c, *taps)) or not (last or out.axes == _axes(x, weight)):
        return None
    added = vector_of(bias, weight.dims[0], sizes) if bias is not None else None
    if bias is not None and added is None:
        return None
    shapes = [tensor.shape(sizes) for tensor in (x, weight, out)]
    positions = [prod(sizes[axis] for axis in _at(x, dim)) for dim in range(channel + 1, len(x.dims))]
    batch = x.shape(sizes)[:channel]
    groups = prod(sizes[axis] for axis in group)
    depth = prod(shapes[1][1:])
    per_group = Product(groups, shapes[1][0] // groups, prod((*batch, *positions)), depth)
    strides, pads, dilations = zip(*((window.stride, window.pad, window.dilation) for window in steps), strict=True)
    shape = (*batch, shapes[1][0], *positions)
    turns = out.dtype in ("f16", "bf16") and not _is_channels_last(x) and prod(shapes[1][1:]) > prod(shapes[1][1:2])
    operands = (View.whole(x, sizes), View.whole(weight, sizes), *([added] if added is not None else []))
    result, steps_of = View.whole(out, sizes), (str(strides), str(pads), str(dilations))
    copied = (prod(shapes[0]) + (0 if last else prod(shape))) if turns else 0
    # PyTorch adds the bias in a kernel of its own; its own kernels for a channel at a time start with it.
    copied += prod(shape) if added is not None and (groups == 1 or depth > prod(shapes[1][2:])) else 0
    return LibraryCall(
        f"torch.conv{rank}d",
        operands,
        View(out, shape, dense(shape), shapes[2]),
        (per_group,),
        moved=held_bytes((*operands, result)),
        arguments=(*(() if added is not None else ("None",)), *steps_of, *((str(groups),) if groups > 1 else ())),
        allocates=True,
        copied=copied,
        tf32="cudnn" if product.tf32 == "cudnn" else "",
        format=_FORMATS[rank] if last else "",
    )


def _at(x: Tensor, dim: int) -> tuple[str, ...]:
    """Axes of the positions along a dimension."""
    window = next((window for window in x.windows if window.dim == dim), Window(dim, 0))
    return window.split(x.dims[dim])[0]


KERNEL = PredefinedKernel(match, orders)
