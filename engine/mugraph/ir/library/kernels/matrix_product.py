"""A product of two tensors as they lie in memory: `torch.mm` or `torch.bmm`, which is cuBLAS on a GPU."""

from __future__ import annotations

from collections.abc import Sequence
from math import prod

from mugraph.ir.block import BlockGraph
from mugraph.ir.library.call import LibraryCall, Product, View, held_bytes, view_of
from mugraph.ir.library.record import PredefinedKernel, lone_product
from mugraph.ir.ops import Tf32
from mugraph.ir.tensors import Sizes, Tensor


def match(block: BlockGraph) -> LibraryCall | None:
    product = lone_product(block)
    if product is None or product.left.windows or product.right.windows:
        return None
    left, right, out, sizes = product.left, product.right, product.out, block.sizes
    a, b = set(left.axes), set(right.axes)
    batch = [axis for axis in out.axes if axis in a and axis in b]
    rows = [axis for axis in out.axes if axis in a and axis not in b]
    columns = [axis for axis in out.axes if axis in b and axis not in a]
    depth = [axis for axis in left.axes if axis in product.over]
    matrices = [batch] if prod(sizes[axis] for axis in batch) > 1 else []
    views = (
        _matrices(left, [*matrices, rows, depth], sizes),
        _matrices(right, [*matrices, depth, columns], sizes),
        _matrices(out, [*matrices, rows, columns], sizes),
    )
    first, second, third = views
    if first is None or second is None or third is None:
        return None
    count, m, n, k = (prod(sizes[axis] for axis in axes) for axes in (batch, rows, columns, depth))
    function = "torch.bmm" if matrices else "torch.mm"
    moved = held_bytes((first, second, third))
    tf32: Tf32 = "cublas" if product.tf32 == "cublas" else ""
    return LibraryCall(function, (first, second), third, (Product(count, m, n, k),), moved, tf32=tf32)


def _matrices(tensor: Tensor, groups: Sequence[Sequence[str]], sizes: Sizes) -> View | None:
    """None also where neither dimension of a matrix is dense: then the call would copy it."""
    view = view_of(tensor, groups, sizes)
    return view if view is not None and 1 in view.strides[-2:] else None


KERNEL = PredefinedKernel(match)
