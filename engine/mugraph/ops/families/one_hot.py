"""Classes as rows of one 1 and zeros: 1 where the place along the row is the class."""

from __future__ import annotations

from mugraph.ir.dtypes import COMPARED
from mugraph.ir.ops import Kind
from mugraph.ops.algebra.arguments import Arguments
from mugraph.ops.algebra.axes import AtomDims
from mugraph.ops.algebra.builder import Builder
from mugraph.ops.algebra.nodes import Node
from mugraph.ops.algebra.refusals import NotLowerable
from mugraph.ops.algebra.registry import lowers


@lowers("torch.nn.functional.one_hot", parameters="input|tensor num_classes")
def one_hot(b: Builder, args: Arguments, dims: AtomDims) -> Node:
    """(The class is one that there is; where it is none, PyTorch has no result either.)"""
    index = args.ref("input")
    if b.values[index.value].dtype not in COMPARED or args.integer("num_classes", -1) < 1:
        raise NotLowerable(
            f"{args.call.target} of as many classes as there are among the numbers is outside the fragment"
        )
    found = b.opaque(Kind.EQUAL, b.at(index, dims[:-1]), b.places.along(dims[-1]))
    if found.kind is Kind.EQUAL:
        found.reach = 1
    return found
