"""Rows of a tensor at an index: `x[index]`, `index_select`, an embedding. They are read where they are used, and not
copied before (looking_up.py)."""

from __future__ import annotations

from collections.abc import Sequence

from mugraph.ir.calls import Argument, Ref, Symbol
from mugraph.ir.dtypes import COMPARED
from mugraph.ops.algebra.arguments import Arguments
from mugraph.ops.algebra.axes import AtomDims
from mugraph.ops.algebra.builder import Builder
from mugraph.ops.algebra.looking_up import rows_at
from mugraph.ops.algebra.nodes import Node
from mugraph.ops.algebra.refusals import NotLowerable
from mugraph.ops.algebra.registry import lowers


def looked_up(b: Builder, x: Ref, items: Sequence[Argument], dims: AtomDims) -> Node | None:
    """x[index], x[:, index]: all of the dimensions before the index, and behind it; None of any other."""
    last = items[-1]
    if isinstance(last, Symbol) and last.name in ("Ellipsis", "..."):
        items = items[:-1]
    found = [(at, item) for at, item in enumerate(items) if isinstance(item, Ref)]
    others = [item for item in items if not isinstance(item, Ref)]
    if len(found) != 1 or any(item != slice(None) for item in others):
        return None
    ((at, index),) = found
    if b.values[index.value].dtype not in COMPARED:  # numbers of eight bits are a mask there
        return None
    return rows_at(b, x, at, index, dims, wraps=True)


@lowers(
    "torch.nn.functional.embedding",
    parameters="input weight padding_idx max_norm norm_type scale_grad_by_freq sparse", in_part=True,
)  # fmt: skip
def embedding(b: Builder, args: Arguments, dims: AtomDims) -> Node:
    """(What is padded differs in the gradients alone.)"""
    if args.has("max_norm"):
        raise NotLowerable(f"{args.call.target} that changes its rows is outside the fragment")
    return rows_at(b, args.ref("weight"), 0, args.ref("input"), dims, wraps=False)


@lowers("torch.index_select", "Tensor.index_select", parameters="input dim index", in_part=True)
def index_select(b: Builder, args: Arguments, dims: AtomDims) -> Node:
    x, index = args.ref("input"), args.ref("index")
    if not b.shape(x) or len(b.shape(index)) != 1:
        raise NotLowerable(f"{args.call.target} at one place is outside the fragment")
    return rows_at(b, x, args.integer("dim") % len(b.shape(x)), index, dims, wraps=False)
