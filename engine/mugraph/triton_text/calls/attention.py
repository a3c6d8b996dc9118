"""Attention without a mask."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from math import sqrt
from typing import Any

import numpy as np

from mugraph.triton_text.calls.call import Box, Call, Reading, matrices, part_of
from mugraph.triton_text.reals import Real
from mugraph.triton_text.refusals import Unreadable
from mugraph.triton_text.tensors import HostTensor


def _attention(call: Call, box: Box) -> Real:
    query, key, value = call.operands
    reals = call.reals
    (*outer, rows, columns) = box
    depth = query.shape[-1]
    q = call.part(query, (*outer, rows, slice(0, depth)))
    k = call.part(key, (*part_of(key, outer), slice(0, key.shape[-2]), slice(0, depth)))
    v = call.part(value, (*part_of(value, outer), slice(0, value.shape[-2]), columns))
    scale = call.arguments.get("scale")
    scale = 1 / sqrt(depth) if scale is None else float(scale)
    a, b = matrices(q, k.each(lambda x: np.swapaxes(x, -1, -2)))
    scores = reals.mul(reals.dot(a, b), reals.constant(scale, a.p.ndim - 1), None, scale)
    weights = reals.exp(scores)
    total = reals.sum(weights, weights.p.ndim - 1, weights.p.shape[-1])
    w, u = matrices(weights, v)
    return reals.div(reals.dot(w, u), total.each(lambda x: x.reshape((1,) * (w.p.ndim - x.ndim) + x.shape)))


def _shape_of_attention(operands: Sequence[HostTensor], arguments: Mapping[str, Any]) -> tuple[int, ...]:
    if any(arguments.get(name) for name in ("attn_mask", "is_causal", "enable_gqa", "dropout_p")):
        raise Unreadable("attention with a mask is not read")
    query, _, value = operands
    return (*query.shape[:-1], value.shape[-1])


READINGS: Mapping[str, Reading] = {
    "torch.nn.functional.scaled_dot_product_attention": Reading(
        ("query", "key", "value", "attn_mask", "dropout_p", "is_causal", "scale", "enable_gqa"),
        3,
        _shape_of_attention,
        _attention,
    )
}
