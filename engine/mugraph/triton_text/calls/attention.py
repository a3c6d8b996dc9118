"""Attention, causal or without a mask."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from math import sqrt
from typing import Any

import numpy as np
from numpy.typing import NDArray

from mugraph.triton_text.calls.call import Box, Call, Reading, matrices, part_of
from mugraph.triton_text.reals import Real
from mugraph.triton_text.refusals import Unreadable, Wrong
from mugraph.triton_text.tensors import HostTensor


def _attention(call: Call, box: Box) -> Real:
    query, key, value = call.operands
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
    scores = reals.mul(reals.dot(a, b), reals.constant(scale, a.p.ndim - 1), None, scale)
    weights = reals.exp(scores)
    if call.arguments.get("is_causal"):
        places: NDArray[np.int64] = np.arange(rows.start, rows.stop, dtype=np.int64)
        keys: NDArray[np.int64] = np.arange(key.shape[-2], dtype=np.int64)
        sees: NDArray[np.bool_] = (keys <= places[:, None]).reshape(*(1,) * (weights.p.ndim - 2), places.size, -1)
        weights = reals.chosen(sees, weights, reals.constant(0.0, weights.p.ndim - 1))
    total = reals.sum(weights, weights.p.ndim - 1, weights.p.shape[-1])
    w, u = matrices(weights, v)
    return reals.div(reals.dot(w, u), total.each(lambda x: x.reshape((1,) * (w.p.ndim - x.ndim) + x.shape)))


def _of_groups(query: HostTensor, key: HostTensor, outer: Sequence[slice]) -> tuple[slice, ...]:
    """The head of keys and values that a group of heads of queries has."""
    *batch, heads = outer
    group = query.shape[-3] // key.shape[-3]
    first, last = heads.start // group, (heads.stop - 1) // group
    if first != last:
        raise Unreadable("attention of several groups at once is not read")
    return (*batch, slice(first, first + 1))


def _shape_of_attention(operands: Sequence[HostTensor], arguments: Mapping[str, Any]) -> tuple[int, ...]:
    if any(arguments.get(name) for name in ("attn_mask", "dropout_p")):
        raise Unreadable("attention with a mask of its own, or with dropout, is not read")
    query, key, value = operands
    if arguments.get("enable_gqa") and (len(query.shape) < 3 or query.shape[-3] % key.shape[-3]):
        raise Wrong("type", "the heads of the queries are no groups of those of the keys")
    return (*query.shape[:-1], value.shape[-1])


READINGS: Mapping[str, Reading] = {
    "torch.nn.functional.scaled_dot_product_attention": Reading(
        ("query", "key", "value", "attn_mask", "dropout_p", "is_causal", "scale", "enable_gqa"),
        3,
        _shape_of_attention,
        _attention,
    )
}
