"""softmax(scale * query @ key.T) @ value: `torch.nn.functional.scaled_dot_product_attention`.

The block graph must be that and nothing else: each operator has its place in it. It is divided by the sum of the
exponentials before or after the second product, which is the same. Types are 16-bit ones, as PyTorch's fused kernels
take them; those compute in float32 between the products, so a program that does is as exact. Of masks there may be the
causal one of as many queries as keys; queries in groups then are more heads than the keys have, and else more rows.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from math import inf, prod

from mugraph.ir.block import BlockGraph
from mugraph.ir.dtypes import ITEMSIZE, NARROW
from mugraph.ir.library.call import LibraryCall, Product, View, dense, held_bytes, view_of
from mugraph.ir.library.record import PredefinedKernel
from mugraph.ir.ops import Kind, Op
from mugraph.ir.tensors import Sizes, Tensor, contiguous_strides
from mugraph.kinds.numbers import Numbers

_HEAD = 256
"""Elements of a head up to which PyTorch has a fused kernel; they are a multiple of eight, of keys as of values."""


@dataclass(frozen=True, slots=True)
class _Attention:
    """over: the axes that the first product sums. logits: axes of its result. keys: axes of the sum. mask: what the
    exponentials are multiplied by"""

    query: Tensor
    key: Tensor
    value: Tensor
    out: Tensor
    scale: float
    over: frozenset[str]
    logits: frozenset[str]
    keys: frozenset[str]
    mask: Op | None


class _Reader:
    """Reads a block graph backwards and remembers which operators it met."""

    def __init__(self, block: BlockGraph) -> None:
        self.block = block
        self._ops = {op.name: op for op in block.ops}
        self.met: set[str] = set()

    def op(self, name: str, *kinds: Kind) -> Op | None:
        op = self._ops.get(name)
        if op is None or op.kind not in kinds:
            return None
        self.met.add(name)
        return op

    def scaled(self, name: str) -> tuple[str, float]:
        """What a value is a multiple of, and how many times."""
        op = self._ops[name]
        for at in op.kind.scaled_by:
            constant = self._ops[op.inputs[at]]
            if constant.kind is Kind.CONST and constant.value:
                self.met.update((name, constant.name))
                inner, factor = self.scaled(op.inputs[1 - at])
                return inner, op.kind.meaning(Numbers(), (factor, constant.value), "", ())
        return name, 1.0

    def masked(self, name: str) -> tuple[str, Op | None]:
        """What a value is a mask of, and the mask."""
        op = self._ops[name]
        if op.kind.absorbing == 0.0 and not op.kind.reduces:
            for one, other in (op.inputs, op.inputs[::-1]):
                mask = self._ops[other]
                if mask.kind.of_places and "columns" in mask.kind.fields:
                    self.met.update((name, other))
                    return one, mask
        return name, None

    def loaded(self, name: str) -> tuple[Tensor, float] | None:
        """The tensor that a value is a multiple of, and how many times."""
        inner, factor = self.scaled(name)
        load = self.op(inner, Kind.LOAD)
        return (self.block.tensor(load.tensor), factor) if load is not None else None


def _attention(block: BlockGraph) -> _Attention | None:
    """What the block graph computes, if it is an attention and nothing else."""
    stores = [op for op in block.ops if op.kind is Kind.STORE]
    if block.loops or len(stores) != 1 or sum(op.kind is Kind.DOT for op in block.ops) != 2:
        return None
    reader = _Reader(block)
    reader.met.add(stores[0].name)
    last = reader.op(stores[0].inputs[0], Kind.DIV, Kind.DOT)
    if last is None or last.f32:
        return None
    # (exp / sum) @ value, or (exp @ value) / sum
    inside = last.kind is Kind.DOT
    product = last if inside else reader.op(last.inputs[0], Kind.DOT)
    if product is None or product.f32:
        return None
    loads = [reader.op(name, Kind.LOAD) for name in product.inputs]
    value, rest = (loads[0], product.inputs[1]) if loads[0] is not None else (loads[1], product.inputs[0])
    weights = reader.op(rest, Kind.DIV) if inside else last
    if value is None or weights is None:
        return None
    kept = weights.inputs[0] if inside else rest
    name, mask = reader.masked(kept)
    exp, total = reader.op(name, Kind.EXP), reader.op(weights.inputs[1], Kind.SUM)
    if exp is None or total is None or total.inputs != (kept,) or total.over != product.over:
        return None
    inner, scale = reader.scaled(exp.inputs[0])
    logits = reader.op(inner, Kind.DOT)
    query, key = (reader.loaded(name) for name in logits.inputs) if logits is not None else (None, None)
    if logits is None or query is None or key is None or len(reader.met) != len(block.ops):
        return None
    if not {*total.over} <= {*key[0].axes}:  # a product's operands have no order
        query, key = key, query
    return _Attention(
        query[0],
        key[0],
        block.tensor(value.tensor),
        block.tensor(stores[0].tensor),
        scale * query[1] * key[1],
        frozenset(logits.over),
        frozenset(logits.axes),
        frozenset(total.over),
        mask,
    )


def match(block: BlockGraph) -> LibraryCall | None:
    found = _attention(block)
    if found is None or not 0 < found.scale < inf:
        return None
    query, key, value, out, sizes = found.query, found.key, found.value, found.out, block.sizes
    if len({tensor.dtype for tensor in (query, key, value, out)}) > 1 or out.dtype not in NARROW:
        return None
    if any(tensor.windows for tensor in (query, key, value)) or out.strides != contiguous_strides(out.dims, sizes):
        return None
    q, k, v = set(query.axes), set(key.axes), set(value.axes)
    batch = [axis for axis in out.axes if axis in q & k & v and axis in found.logits - found.keys]
    rows = [axis for axis in out.axes if axis in found.logits and axis not in batch]  # grouped queries are rows too
    columns = [axis for axis in out.axes if axis not in found.logits]
    keys = [axis for axis in key.axes if axis in found.keys]
    depth = [axis for axis in query.axes if axis in found.over]
    if out.axes != (*batch, *rows, *columns) or q != {*batch, *rows, *depth}:
        return None
    if k != {*batch, *keys, *depth} or v != {*batch, *keys, *columns}:
        return None
    grouped: list[str] = []
    if found.mask is not None:
        own = found.mask.rows
        if not _is_causal(found.mask, keys, sizes) or tuple(rows[len(rows) - len(own) :]) != own:
            return None
        grouped, rows = rows[: len(rows) - len(own)], [*own]
    for at in range(max(len(batch), 1) - 1, -1, -1):  # two dimensions, whichever have one distance each
        heads, more = (batch[:at], batch[at:]), (batch[:at], [*batch[at:], *grouped])
        operands = [
            view_of(tensor, [*of], sizes)
            for tensor, of in (
                (query, (*more, rows, depth)), (key, (*heads, keys, depth)), (value, (*heads, keys, columns))
            )
        ]  # fmt: skip
        views = tuple(view for view in operands if view is not None and view.strides[-1] == 1)
        if len(views) == len(operands):
            shape = tuple(prod(sizes[axis] for axis in axes) for axes in (*more, rows, columns))
            options = (*(("is_causal=True",) if found.mask else ()), *(("enable_gqa=True",) if grouped else ()))
            return _call(views, View(out, shape, dense(shape), out.shape(sizes)), found.scale, options)
    return None


def _is_causal(mask: Op, keys: Sequence[str], sizes: Sizes) -> bool:
    """Does each query see the keys up to its own place, and are there as many?"""
    rows, columns = (prod(sizes[axis] for axis in axes) for axes in (mask.rows, mask.columns))
    return rows == columns and mask.value == 0 and mask.columns == tuple(keys)


def _call(operands: tuple[View, ...], out: View, scale: float, options: tuple[str, ...]) -> LibraryCall:
    """options: that there is a mask, and groups"""
    (*heads, rows, depth), (*_, keys, columns) = operands[0].shape, operands[2].shape
    matrices = prod(heads)
    moved = held_bytes((*operands, out))
    if depth != columns or depth % 8 or depth > _HEAD:  # not fused: logits and weights are written and read
        moved += 4 * matrices * rows * keys * ITEMSIZE[out.tensor.dtype]
    return LibraryCall(
        "torch.nn.functional.scaled_dot_product_attention",
        operands,
        out,
        (Product(matrices, rows, keys, depth), Product(matrices, rows, columns, keys)),
        moved,
        arguments=(f"scale={scale!r}", *options),
        allocates=True,
        has_softmax=True,
        is_causal=bool(options),
        is_particular=bool(options),
        copied=0 if operands[0].is_dense else prod(out.shape),  # the result lies as the query does
    )


KERNEL = PredefinedKernel(match)
