"""softmax(scale * query @ key.T, under a mask) @ value: `torch.nn.functional.scaled_dot_product_attention`.

PyTorch's fused kernels compute in float32 between the products, those for float32 with three products of tf32 for each
(CUTLASS's OpMultiplyAddFastF32), so a program that does is as exact. Of masks there may be the causal one of as many
queries as keys, or one that is read, which is added to the logits or holds truth values. Queries in groups then are
more heads than the keys have, and else more rows.

Where a mask hides all of a row, the result is 0. A program that adds a mask and says nothing of such rows has NaN
there. What a mask of truth values hides is added to as well, so it must be a number; a program that replaces it is no
such call.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from math import inf, prod

from mugraph.ir.block import BlockGraph
from mugraph.ir.dtypes import COMPUTED, ITEMSIZE, NARROW
from mugraph.ir.library.attention import Attention, attention_of
from mugraph.ir.library.call import LibraryCall, Product, View, dense, held_bytes, view_of
from mugraph.ir.library.record import PredefinedKernel
from mugraph.ir.ops import Op
from mugraph.ir.tensors import Sizes, Tensor, contiguous_strides

_HEAD = 256
"""Elements of a head up to which PyTorch has a fused kernel."""
_STEP = 16
"""Elements that a mask's rows are multiples of; of others PyTorch makes a copy with longer rows."""
_Groups = tuple[Sequence[str], ...]
"""Axes of two dimensions of matrices, of rows, and of columns."""


def match(block: BlockGraph) -> LibraryCall | None:
    found = attention_of(block)
    if found is None or not 0 < found.scale < inf:
        return None
    query, key, value, out, sizes = found.query, found.key, found.value, found.out, block.sizes
    if len({tensor.dtype for tensor in (query, key, value, out)}) > 1 or out.dtype not in COMPUTED:
        return None
    if any(tensor.windows for tensor in (query, key, value)) or out.strides != contiguous_strides(out.dims, sizes):
        return None
    if found.read is not None and not _takes(found):
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
    for heads, grouped, own in _arrangements(found, batch, rows):
        if found.places is not None and (own != [*found.places.rows] or not _is_causal(found.places, keys, sizes)):
            continue
        more = (heads[0], [*heads[1], *grouped])
        of = ((query, (*more, own, depth)), (key, (*heads, keys, depth)), (value, (*heads, keys, columns)))
        views = [view_of(tensor, groups, sizes) for tensor, groups in of]
        operands = tuple(view for view in views if view is not None and view.strides[-1] == 1)
        if len(operands) < len(of):
            continue
        shape = tuple(prod(sizes[axis] for axis in axes) for axes in (*more, own, columns))
        result = View(out, shape, dense(shape), out.shape(sizes))
        if found.read is None:
            return _call(found, operands, result, None, bool(grouped))
        mask = _mask(found.read.tensor, (*more, own, keys), sizes)
        if mask is not None:
            return _call(found, operands, result, mask, bool(grouped))
    return None


def _takes(found: Attention) -> bool:
    """Does PyTorch take the mask?"""
    assert found.read is not None
    mask = found.read.tensor
    return not mask.windows and mask.dtype == (found.out.dtype if found.read.is_added else "bool")


def _arrangements(
    found: Attention, batch: list[str], rows: list[str]
) -> Iterator[tuple[tuple[list[str], list[str]], list[str], list[str]]]:
    """Two dimensions of batch axes, whichever have one distance each; of the axes of rows those that are heads; and
    those that are rows."""
    is_masked = found.read is not None or found.places is not None
    parts = [*range(max(len(batch), 1) - 1, -1, -1), *([len(batch)] if found.read is not None else [])]
    for cut in range(max(len(rows), 1) if is_masked else 1):
        for at in parts:
            yield (batch[:at], batch[at:]), rows[:cut], rows[cut:]


def _is_causal(mask: Op, keys: Sequence[str], sizes: Sizes) -> bool:
    """Does each query see the keys up to its own place, and are there as many?"""
    rows, columns = (prod(sizes[axis] for axis in axes) for axes in (mask.rows, mask.columns))
    return rows == columns and mask.value == 0 and mask.columns == tuple(keys)


def _mask(mask: Tensor, groups: _Groups, sizes: Sizes) -> View | None:
    """As it is given to the call, which repeats it along dimensions that it lacks. None where it has a part of one, or
    is the same for all keys."""
    found: list[list[str]] = []
    for group in groups:
        axes = [axis for axis in group if sizes[axis] > 1]
        found.append([axis for axis in axes if axis in mask.axes])
        if found[-1] not in ([], axes):
            return None
    view = view_of(mask, found, sizes) if found[-1] else None
    if view is None or view.strides[-1] != 1:
        return None
    # A matrix is taken as well; cuDNN takes no mask of three dimensions.
    is_plain = len(view.own_shape) == 2 and view.shape == (1, 1, *view.own_shape)
    return View.whole(mask, sizes) if is_plain else view


def _call(found: Attention, operands: tuple[View, ...], out: View, mask: View | None, is_grouped: bool) -> LibraryCall:
    (*heads, rows, depth), (*_, keys, columns) = operands[0].shape, operands[2].shape
    dtype, matrices = out.tensor.dtype, prod(heads)
    given = (*operands, *([mask] if mask is not None else []))
    moved = held_bytes((*given, out))
    copied = 0 if operands[0].is_dense else prod(out.shape)  # the result lies as the query does
    is_causal = found.places is not None
    if not _is_fused(dtype, depth, columns, mask is not None, is_grouped):  # logits and weights are written and read
        moved += 4 * matrices * rows * keys * ITEMSIZE[dtype]
    elif mask is not None and keys % _STEP:
        copied += matrices * rows * keys
    options = ("is_causal=True",) if is_causal else ()
    return LibraryCall(
        "torch.nn.functional.scaled_dot_product_attention",
        given,
        out,
        (Product(matrices, rows, keys, depth), Product(matrices, rows, columns, keys)),
        moved,
        arguments=(f"scale={found.scale!r}", *options, *(("enable_gqa=True",) if is_grouped else ())),
        allocates=True,
        has_softmax=True,
        is_causal=is_causal,
        is_particular=is_causal or is_grouped,
        fuses=found.read is not None and not found.read.is_said,
        copied=copied,
        keywords=("", "", "attn_mask") if mask is not None else (),
        truths=prod(mask.shape) if mask is not None and mask.tensor.dtype == "bool" else 0,
    )


def _is_fused(dtype: str, depth: int, columns: int, is_masked: bool, is_grouped: bool) -> bool:
    """By the memory-efficient kernel, which takes masks and float32; without them in 16 bits by flash attention."""
    if dtype in NARROW and not is_masked:
        return depth == columns and not depth % 8 and depth <= _HEAD
    # In groups, masks are taken by cuDNN, which has no float32.
    return not depth % 8 and not columns % 8 and (dtype in NARROW or not is_grouped)


KERNEL = PredefinedKernel(match)
