"""A product of two tensors as they lie in memory, and a tensor that is added to it: `torch.addmm` or `torch.baddbmm`.

Of a vector along the columns that is free: cuBLASLt adds it to what it writes (measured on an H200 in float16, bfloat16
and TF32: 1.0 to 1.07 times as long as the product alone). Anything else PyTorch copies to where the result goes, and
cuBLAS adds the product to it, each times a factor; of a vector with a factor, too.
"""

from __future__ import annotations

from math import prod

from mugraph.ir.block import BlockGraph
from mugraph.ir.library.call import LibraryCall, View, held_bytes, vector_of, view_of
from mugraph.ir.library.record import Matrices, PredefinedKernel, lone_product, matrices_of
from mugraph.ir.ops import Tf32
from mugraph.ir.tensors import Sizes, Tensor

_FEW = 1 << 20
"""Elements of a result."""


def match(block: BlockGraph) -> LibraryCall | None:
    product = lone_product(block)
    if product is None or product.bias is None:
        return None
    found = matrices_of(product, block.sizes)
    bias = _bias(product.bias, found, block.sizes) if found is not None else None
    if found is None or bias is None:
        return None
    is_free = len(bias.shape) == 1 and product.beta == 1.0 and _takes_a_vector(found)
    tf32: Tf32 = "cublas" if product.tf32 == "cublas" else ""
    return LibraryCall(
        "torch.baddbmm" if found.has_batch else "torch.addmm",
        (bias, found.left, found.right),
        found.out,
        (found.product,),
        held_bytes((bias, found.left, found.right, *([] if is_free else [found.out]), found.out)),
        copied=0 if is_free else prod(found.out.shape),
        arguments=tuple(f"{name}={x!r}" for name, x in (("beta", product.beta), ("alpha", product.alpha)) if x != 1.0),
        tf32=tf32,
        fuses=not product.is_plain,
        is_slow=is_free and product.out.dtype == "f32" and not tf32 and _has_few_tiles(found),
    )


def _has_few_tiles(found: Matrices) -> bool:
    """cuBLASLt does not divide the depth of a product of float32 numbers, where cuBLAS does. (Measured on an H200: 2.3
    times as long with 64 rows of 1,024 columns, 1.4 with 512, as long with 1,024.)"""
    of = found.product
    return of.rows > 1 and of.rows * of.columns < _FEW


def _takes_a_vector(found: Matrices) -> bool:
    """Does PyTorch ask cuBLASLt, which adds a vector as it writes (isInputCompliesAddmmCudaLt)?"""
    of = found.product
    return not found.has_batch and found.out.is_dense and of.depth > 1 and of.columns > 1


def _bias(bias: Tensor, found: Matrices, sizes: Sizes) -> View | None:
    """As it is given to the call, which repeats it along dimensions that it lacks. None where it has a part of one."""
    if bias.windows:
        return None
    own = {axis for axis in bias.axes if sizes[axis] > 1}
    if own and (vector := vector_of(bias, found.columns, sizes)) is not None:
        return vector
    batch = tuple(axis for axis in found.out.tensor.axes if axis not in (*found.rows, *found.columns))
    groups: list[list[str]] = []
    for whole in ((batch,) if found.has_batch else ()) + (found.rows, found.columns):
        axes = [axis for axis in whole if sizes[axis] > 1]
        groups.append([axis for axis in axes if axis in own])
        if groups[-1] not in ([], axes):
            return None
    return view_of(bias, groups, sizes)


KERNEL = PredefinedKernel(match)
