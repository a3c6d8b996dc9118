"""Calls that reduce rows, and windows."""

from __future__ import annotations

from collections.abc import Mapping
from math import prod

from mugraph.baseline.arguments import parts, tensors
from mugraph.baseline.launch import LONG_ROW, Launch, Values, name_of
from mugraph.ir.calls import Call
from mugraph.ir.dtypes import itemsize

_SHARES = {"softmax": 0.12, "log_softmax": 0.12, "softmin": 0.12}
"""Of `row_us` that a turn takes where one thread block has the row: it reads 16 bytes a thread at once. (Measured on an
H200, 26 November, rows of 0.5 to 32 MB: 0.16 to 0.23 microseconds for three turns of 2,048 bytes of a softmax; 1.0 to
2.0 for two of a layer norm.)"""
_AGAIN = {"softmax": 2, "log_softmax": 2, "softmin": 2, "layer_norm": 1, "rms_norm": 1, "group_norm": 0}
"""Times that a kernel of one call reads a long row again: for a maximum, for a sum, for what it writes."""
_ALONE = frozenset({"softmax", "log_softmax", "softmin", "layer_norm", "rms_norm"})
"""One thread block has a row to itself, whatever its length."""


def row_launch(name: str, reads: Mapping[int, int], writes: Mapping[int, int], row: int) -> Launch:
    """Of a call that reduces rows. row: bytes of one"""
    again = _AGAIN.get(name, 0) if row > LONG_ROW else 0
    read = {value: size * (1 + again) for value, size in reads.items()}
    turns = 1 + _AGAIN[name] if name in _ALONE else 0
    return Launch("reduction", read, writes, row=row, turns=turns, share=_SHARES.get(name, 1.0))


def row_bytes(call: Call, values: Values) -> int:
    """Bytes of what is reduced together; of a norm or a softmax, whose result is as large as its operand, a row of
    it."""
    (first, *_), out = tensors(call, values) or [values[call.outputs[0]]], values[call.outputs[0]]
    name, width = name_of(call), itemsize(first.dtype)
    if prod(out.shape) < prod(first.shape):
        return width * (prod(first.shape) // max(1, prod(out.shape)))
    arguments = (*call.args[1:2], *call.kwargs.values())
    if name in ("layer_norm", "rms_norm"):
        shape = next((one for one in arguments if isinstance(one, tuple)), first.shape[-1:])
        return width * prod(part for part in shape if isinstance(part, int))
    if name in ("group_norm", "instance_norm", "batch_norm"):
        groups = next((one for one in arguments if isinstance(one, int)), 1) if name == "group_norm" else 0
        return width * (prod(first.shape[1:]) // max(1, groups) if groups else prod(first.shape[2:]))
    dim = next((one for one in arguments if isinstance(one, int)), -1)
    return width * first.shape[dim] if first.shape and -len(first.shape) <= dim < len(first.shape) else width


def window_of(call: Call, rank: int) -> int:
    """Elements of a window of pooling."""
    size = call.args[1] if len(call.args) > 1 else call.kwargs.get("kernel_size")
    sizes = [part for part in parts((size,)) if isinstance(part, int)]
    return prod(sizes) if len(sizes) > 1 else (sizes or [1])[0] ** rank
