"""PyTorch's convolution as a pre-defined kernel: the product of a windowed tensor and a weight, maybe with a bias.

With a kernel of one element, and no steps, no window is needed; a batch of more than one then is no product of
matrices, as the channels lie between the batch and the places.
"""

from __future__ import annotations

from math import prod

from mugraph.ir.block import BlockGraph
from mugraph.ir.library.call import LibraryCall, Product
from mugraph.ir.library.record import Orders, PredefinedKernel, lone_product, matrices_of
from mugraph.ir.library.windowed import Convolution, call_of, of_product, orders_of
from mugraph.ir.ops import Op
from mugraph.ir.program import TensorProgram
from mugraph.ir.tensors import Sizes


def orders(program: TensorProgram, op: Op) -> Orders:
    return orders_of(program, op, _is_windowed)


def _is_windowed(found: Convolution, sizes: Sizes) -> bool:
    return bool(found.x.windows)


def match(block: BlockGraph) -> LibraryCall | None:
    product = lone_product(block)
    found = of_product(product) if product is not None and product.is_plain else None
    if product is None or found is None or found.weight.windows or not _has_steps(found):
        return None
    sizes = block.sizes
    if not found.x.windows and product.tf32 != "cudnn" and matrices_of(product, sizes) is not None:
        return None
    shape, out = found.weight.shape(sizes), product.out.shape(sizes)
    groups = prod(sizes[axis] for axis in found.group)
    of = Product(groups, shape[0] // groups, prod(out) // shape[0], prod(shape[1:]))
    steps = zip(*((window.stride, window.pad, window.dilation) for window in found.windows), strict=True)
    arguments = (*(str(each) for each in steps), *((str(groups),) if groups > 1 else ()))
    return call_of(found, product, block, f"torch.conv{found.rank}d", of, arguments)


def _has_steps(found: Convolution) -> bool:
    """What PyTorch pads behind is what it pads before; less than a stride may be left over there."""
    return all(
        window.spread == 1 and not window.edge and not window.reverse and 0 <= window.rest + window.pad < window.stride
        for window in found.windows
    )


KERNEL = PredefinedKernel(match, orders)
