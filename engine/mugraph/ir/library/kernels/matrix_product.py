"""A product of two tensors as they lie in memory: `torch.mm` or `torch.bmm`, which is cuBLAS on a GPU."""

from __future__ import annotations

from mugraph.ir.block import BlockGraph
from mugraph.ir.library.call import LibraryCall, held_bytes
from mugraph.ir.library.record import PredefinedKernel, lone_product, matrices_of
from mugraph.ir.ops import Tf32


def match(block: BlockGraph) -> LibraryCall | None:
    product = lone_product(block)
    found = matrices_of(product, block.sizes) if product is not None and product.bias is None else None
    if product is None or found is None:
        return None
    function = "torch.bmm" if found.has_batch else "torch.mm"
    moved = held_bytes((found.left, found.right, found.out))
    tf32: Tf32 = "cublas" if product.tf32 == "cublas" else ""
    return LibraryCall(function, (found.left, found.right), found.out, (found.product,), moved, tf32=tf32)


KERNEL = PredefinedKernel(match)
