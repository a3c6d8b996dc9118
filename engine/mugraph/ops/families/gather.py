"""One element of each row, at an index, as a sum over the row (picking.py): a row that is computed need not be stored.

What is loaded for nothing else is looked up as before (units/looked_up.py).
"""

from __future__ import annotations

from mugraph.ir.dtypes import COMPARED, COMPUTED
from mugraph.ops.algebra.arguments import Arguments
from mugraph.ops.algebra.axes import AtomDims
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
