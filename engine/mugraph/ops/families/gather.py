"""One element of each row, at an index, as a sum over the row (picking.py): a row that is computed need not be stored.

What is loaded for nothing else is looked up as before (units/looked_up.py).
"""

from __future__ import annotations

from collections.abc import Sequence

from mugraph.ir.calls import Argument, Ref
from mugraph.ir.dtypes import COMPARED, COMPUTED
from mugraph.ir.ops import Kind
from mugraph.ops.algebra.arguments import Arguments
from mugraph.ops.algebra.axes import AtomDim, AtomDims
from mugraph.ops.algebra.builder import Builder
from mugraph.ops.algebra.nodes import Node
from mugraph.ops.algebra.picking import picked
from mugraph.ops.algebra.refusals import NotLowerable
from mugraph.ops.algebra.registry import lowers


@lowers("torch.gather", "Tensor.gather", parameters="input dim index sparse_grad", in_part=True)
@lowers("torch.take_along_dim", "Tensor.take_along_dim", parameters="input indices|index dim", in_part=True)
def gather(b: Builder, args: Arguments, dims: AtomDims) -> Node:
    x, index = args.ref("input"), args.ref("indices" if args.has("indices") else "index")
    shape = b.shape(x)
    if not shape or not args.has("dim"):
        raise NotLowerable(f"{args.call.target} of a tensor as one row is outside the fragment")
    dim = args.integer("dim") % len(shape)
    if b.shape(index) != (*shape[:dim], 1, *shape[dim + 1 :]):
        raise NotLowerable(f"{args.call.target} of several places of a row, or of some rows, is outside the fragment")
    if shape[dim] == 1:
        raise NotLowerable(f"{args.call.target} of rows of one element is outside the fragment")
    if b.values[index.value].dtype not in COMPARED or b.values[x.value].dtype not in COMPUTED:
        raise NotLowerable(f"{args.call.target} of whole numbers is outside the fragment")
    row = b.fresh(shape[dim], "c")
    return picked(b, b.at(index, dims), b.at(x, (*dims[:dim], row, *dims[dim + 1 :])), row)


def at_places(b: Builder, x: Ref, items: Sequence[Argument], dims: AtomDims) -> Node:
    """x[arange(n), y]: of the first dimensions one has an index that is read, and the others all places in order."""
    shape = b.shape(x)
    if not all(isinstance(item, Ref) and b.values[item.value].dtype in COMPARED for item in items):
        raise NotLowerable("an index with tensors and other things is outside the fragment")
    common = len(dims) - (len(shape) - len(items))
    indices = [b.broadcast(item, dims[:common]) for item in items]
    found = [_all_places(b, index, dims[:common], size) for index, size in zip(indices, shape, strict=False)]
    if len(found) < 2 or found.count(None) != 1 or b.values[x.value].dtype not in COMPUTED:
        raise NotLowerable("an index that is a tensor is outside the fragment")
    at = found.index(None)
    if shape[at] == 1:
        raise NotLowerable("an index of rows of one element is outside the fragment")
    row = b.fresh(shape[at], "c")
    asked = tuple(row if dim is None else dim for dim in found)
    return picked(b, indices[at], b.at(x, (*asked, *dims[common:])), row)


def _all_places(b: Builder, index: Node, dims: AtomDims, size: int) -> AtomDim | None:
    """The dimension along which an index counts from 0, as x has it; None of any other."""
    if index.kind is not Kind.POSITION or index.value:
        return None
    (along,) = b.atoms.resolve_dims(index.dims[:1])
    dim = next((dim for dim in dims if b.atoms.resolve(dim) == along), None)
    return b.atoms.section(size, 0, 1, dim) if dim is not None else None
