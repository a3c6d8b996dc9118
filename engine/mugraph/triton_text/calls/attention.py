"""Attention: causal, with a mask, or without one.

A mask that is read is added to the scaled logits, or holds truth values; where it hides all of a row, the result is 0.
No number over the fields is minus infinity, so what an added mask hides all of is asked as PyTorch's documentation says
it: whether the largest number of the row is below all numbers.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from math import sqrt
from typing import Any

import numpy as np
from numpy.typing import NDArray

from mugraph.ir.dtypes import largest
from mugraph.kinds import Kind
from mugraph.triton_text.calls.call import Box, Call, Reading, matrices, of_one_kind, part_of
from mugraph.triton_text.reals import Real
from mugraph.triton_text.refusals import Unreadable, Wrong
from mugraph.triton_text.tensors import HostTensor

_TRUTHS = ("bool", "int1")


def _attention(call: Call, box: Box) -> Real:
    query, key, value, *masks = call.operands
    reals = call.reals
    (*outer, rows, columns) = box
    depth = query.shape[-1]
    q = call.part(query, (*outer, rows, slice(0, depth)))
    theirs = _of_groups(query, key, outer) if call.arguments.get("enable_gqa") else outer
    k = call.part(key, (*part_of(key, theirs), slice(0, key.shape[-2]), slice(0, depth)))
    v = call.part(value, (*part_of(value, theirs), slice(0, value.shape[-2]), columns))
    scale = call.arguments.get("scale")
    scale = 1 / sqrt(depth) if scale is None else float(scale)
    a, b = matrices(q, k.each(lambda x: np.swapaxes(x, -1, -2)))
    scores, seen = reals.dot(a, b), None
    factor = reals.constant(scale, a.p.ndim - 1)
    if masks:
        mask = _part_of_mask(call, masks[0], box, scores.p.ndim)
        is_truth = masks[0].memory.kind in _TRUTHS
        if is_truth:  # minus infinity is the same times a positive number
            scores = reals.mul(reals.opaque(Kind.ATTENDED, mask, scores), factor, None, scale)
        else:
            scores = reals.add(reals.mul(scores, factor, None, scale), mask)
        call.world.asked_empty = True
        seen = _seen(call, mask, is_truth) if call.world.asks_empty else None
    else:
        scores = reals.mul(scores, factor, None, scale)
    weights = reals.exp(scores)
    if call.arguments.get("is_causal"):
        places: NDArray[np.int64] = np.arange(rows.start, rows.stop, dtype=np.int64)
        keys: NDArray[np.int64] = np.arange(key.shape[-2], dtype=np.int64)
        sees: NDArray[np.bool_] = (keys <= places[:, None]).reshape(*(1,) * (weights.p.ndim - 2), places.size, -1)
        weights = reals.chosen(sees, weights, reals.constant(0.0, weights.p.ndim - 1))
    total = reals.sum(weights, weights.p.ndim - 1, weights.p.shape[-1])
    w, u = matrices(weights, v)
    found = reals.div(reals.dot(w, u), total.each(lambda x: x.reshape((1,) * (w.p.ndim - x.ndim) + x.shape)))
    if seen is None:
        return found
    return reals.opaque(Kind.KEPT, seen.each(lambda x: x.reshape((1,) * (w.p.ndim - x.ndim) + x.shape)), found)


def _part_of_mask(call: Call, mask: HostTensor, box: Box, rank: int) -> Real:
    """Of the rows, with all of their keys."""
    *outer, rows, _ = box
    keys = slice(0, mask.shape[-1])
    of_rows = slice(0, 1) if mask.shape[-2] == 1 else rows
    found = call.part(mask, (*part_of(mask, outer), of_rows, keys))
    return found.each(lambda x: x.reshape((1,) * (rank - x.ndim) + x.shape))


def _seen(call: Call, mask: Real, is_truth: bool) -> Real:
    """1 where a row's mask lets something be seen."""
    reals, rank = call.reals, mask.p.ndim - 1
    most = reals.amax(mask, rank)
    if is_truth:
        return most
    hides = reals.opaque(Kind.GREATER, reals.constant(-largest("f32"), rank), most)
    return reals.add(reals.constant(1.0, rank), reals.negative(hides))


def _of_groups(query: HostTensor, key: HostTensor, outer: Sequence[slice]) -> tuple[slice, ...]:
    """The head of keys and values that a group of heads of queries has."""
    *batch, heads = outer
    group = query.shape[-3] // key.shape[-3]
    first, last = heads.start // group, (heads.stop - 1) // group
    if first != last:
        raise Unreadable("attention of several groups at once is not read")
    return (*batch, slice(first, first + 1))


def _shape_of_attention(operands: Sequence[HostTensor], arguments: Mapping[str, Any]) -> tuple[int, ...]:
    if arguments.get("dropout_p"):
        raise Unreadable("attention with dropout is not read")
    query, key, value, *masks = operands
    if arguments.get("enable_gqa") and (len(query.shape) < 3 or query.shape[-3] % key.shape[-3]):
        raise Wrong("type", "the heads of the queries are no groups of those of the keys")
    if masks and arguments.get("is_causal"):
        raise Wrong("type", "attention has a mask and is causal")
    scores = (*query.shape[:-1], key.shape[-2])
    for mask in masks:
        own = mask.shape
        if not 2 <= len(own) <= len(scores) or own[-1] != scores[-1]:
            raise Wrong("type", f"scores of shape {list(scores)} have a mask of shape {list(own)}")
        if any(n not in (1, m) for n, m in zip(own, scores[len(scores) - len(own) :], strict=True)):
            raise Wrong("type", f"scores of shape {list(scores)} have a mask of shape {list(own)}")
    return (*query.shape[:-1], value.shape[-1])


def _kind_of_attention(operands: Sequence[HostTensor], arguments: Mapping[str, Any]) -> str:
    *others, last = operands
    if len(operands) > 3 and last.memory.kind in _TRUTHS:
        return of_one_kind(others, arguments)
    return of_one_kind(operands, arguments)


READINGS: Mapping[str, Reading] = {
    "torch.nn.functional.scaled_dot_product_attention": Reading(
        ("query", "key", "value", "attn_mask", "dropout_p", "is_causal", "scale", "enable_gqa"),
        4,
        _shape_of_attention,
        _attention,
        kind=_kind_of_attention,
    )
}
