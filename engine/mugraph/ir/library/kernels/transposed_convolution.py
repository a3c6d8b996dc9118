"""PyTorch's transposed convolution as a pre-defined kernel, maybe with a bias.

It is a convolution of a tensor with zeros between its elements and of a kernel from its last tap to its first
(ops/families/convolution.py), of which the library computes only the products that are not with these zeros.
"""

from __future__ import annotations

from math import prod

from mugraph.ir.block import BlockGraph
from mugraph.ir.library.call import LibraryCall, Product
from mugraph.ir.library.record import Orders, PredefinedKernel, lone_product
from mugraph.ir.library.windowed import Convolution, call_of, of_product, orders_of
from mugraph.ir.ops import Op
from mugraph.ir.program import TensorProgram
from mugraph.ir.tensors import Sizes
from mugraph.ir.windows import Window


def orders(program: TensorProgram, op: Op) -> Orders:
    return orders_of(program, op, lambda found, sizes: _steps(found, sizes) is not None, transposed=True)


def match(block: BlockGraph) -> LibraryCall | None:
    product = lone_product(block)
    found = of_product(product, transposed=True) if product is not None and product.is_plain else None
    steps = _steps(found, block.sizes) if found is not None else None
    if product is None or found is None or steps is None:
        return None
    sizes = block.sizes
    shape, x = found.weight.shape(sizes), found.x.shape(sizes)
    groups = prod(sizes[axis] for axis in found.group)
    of = Product(groups, prod(x) // shape[0], prod(shape[1:]), shape[0] // groups)
    strides, pads, more, dilations = zip(*steps, strict=True)
    arguments = (str(strides), str(pads), str(more), str(groups), str(dilations))
    return call_of(found, product, block, f"torch.conv_transpose{found.rank}d", of, arguments)


def _steps(found: Convolution, sizes: Sizes) -> list[tuple[int, int, int, int]] | None:
    """Of each dimension stride, padding, the output's padding, and dilation; None where it is no transposed
    convolution, or has no window: a product of matrices."""
    turned = {window.dim: window for window in found.weight.windows}
    if not found.x.windows or not turned.keys() <= set(range(2, found.rank + 2)):
        return None
    steps: list[tuple[int, int, int, int]] = []
    for at, window in enumerate(found.windows, 2):
        taps = prod(sizes[axis] for axis in found.weight.dims[at])
        is_turned = turned.get(at) == Window(at, 0, reverse=True) or (taps == 1 and at not in turned)
        if not is_turned or window.stride > 1 or window.edge or window.reverse:
            return None
        reach = (taps - 1) * window.dilation
        extent = found.x.shape(sizes)[window.dim]
        places = prod(sizes[axis] for axis in found.places[at - 2])
        pad = reach - window.pad
        more = places - ((extent - 1) * window.spread - 2 * pad + reach + 1)
        if pad < 0 or not 0 <= more < max(window.spread, window.dilation):
            return None
        steps.append((window.spread, pad, more, window.dilation))
    return steps


KERNEL = PredefinedKernel(match, orders)
