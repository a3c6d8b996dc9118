"""Rows of a tensor at an index, as they are loaded: nothing is computed, and no other row is read (ir/lookups.py)."""

from __future__ import annotations

from collections.abc import Sequence

from mugraph.ir.calls import Ref
from mugraph.ir.dtypes import COMPARED, is_read
from mugraph.ir.lookups import Lookup
from mugraph.ir.ops import Kind
from mugraph.ir.ranges import dense_strides
from mugraph.ir.windows import Window
from mugraph.ops.algebra.axes import AtomDim, AtomDims
from mugraph.ops.algebra.builder import Builder
from mugraph.ops.algebra.nodes import Node
from mugraph.ops.algebra.refusals import NotLowerable


def rows_at(b: Builder, x: Ref, dim: int, index: Ref, dims: AtomDims, *, wraps: bool) -> Node:
    """What stands in x with `index` in place of its dimension `dim`. dims: of the result, in which the index's own
    dimensions are in that place. wraps: a number below zero counts from the end"""
    end = dim + len(b.shape(index))
    rows = b.shape(x)[dim]
    if rows == 1:
        raise NotLowerable("an index into one row is outside the fragment")
    row = b.fresh(rows)
    table = b.at(x, (*dims[:dim], row, *dims[end:]))
    where = b.at(index, dims[dim:end])
    if not _is_loaded(table) or not _is_loaded(where) or table.raw:
        raise NotLowerable("an index of what is computed, or that is computed, is outside the fragment")
    info, whole = b.values[where.source], b.values[table.source]
    if not is_read(info.dtype) or info.dtype not in COMPARED:
        raise NotLowerable(f"an index of type {info.dtype} is outside the fragment")
    if info.skew:
        raise NotLowerable("an index that does not begin at a word of 16 bytes is outside the fragment")
    if any(stride == 0 and size > 1 for size, stride in zip(whole.shape, whole.strides, strict=True)):
        raise NotLowerable("an index into what is repeated is outside the fragment")
    if b.varying and any(size > 1 for size in whole.shape[:dim]):
        raise NotLowerable("an index of rows inside of others, where sizes vary, is outside the fragment")
    own = _joined(b, dims[dim:end])
    is_part = any(atom in b.atoms.sections for atom in own)
    if is_part or _joined(b, where.dims) != own or not _lies_densely(info.shape, info.strides):
        raise NotLowerable("a part of an index, or one that does not lie row by row, is outside the fragment")
    kept, row = b.atoms.resolve_dims(table.dims), b.atoms.resolve(row)
    if kept.count(row) != 1:
        raise NotLowerable("an index into a part of a dimension is outside the fragment")
    at = kept.index(row)
    lookup = Lookup(b.index_name(where.source), info.dtype, rows, wraps)
    return b.looked_up(table, (*kept[:at], own, *kept[at + 1 :]), Window(at, 0, lookup=lookup))


def _is_loaded(node: Node) -> bool:
    return node.kind is Kind.LOAD and not node.windows and not node.fn and not node.cases and node.keep is None


def _joined(b: Builder, dims: Sequence[AtomDim]) -> AtomDim:
    return tuple(atom for dim in b.atoms.resolve_dims(dims) for atom in dim)


def _lies_densely(shape: tuple[int, ...], strides: tuple[int, ...]) -> bool:
    dense = dense_strides(shape)
    return all(n == 1 or have == want for n, have, want in zip(shape, strides, dense, strict=True))
