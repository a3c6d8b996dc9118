"""Halves that take turns along a dimension, `x[:, ::2]` and `x[:, 1::2]`: windows of one piece of memory
(ops/finishing/halves.py), which are read together (codegen/tile/halves.py)."""

from __future__ import annotations

from dataclasses import replace

from mugraph.ir.tensors import Tensor

STEP = 2


def is_half(tensor: Tensor) -> bool:
    """Does it read every second element of a dimension that lies together, and of one that has another half?"""
    if len(tensor.windows) != 1 or not tensor.source:
        return False
    (window,) = tensor.windows
    every = (window.taps, window.stride, window.edge, window.reverse) == (0, STEP, False, False)
    return every and (window.pad, window.rest) in ((0, 1), (-1, 0)) and tensor.strides[window.dim] == 1


def are_halves(tensor: Tensor, other: Tensor) -> bool:
    """Do they read all of a dimension, each what the other leaves out?"""
    if not is_half(tensor) or not is_half(other) or tensor.windows == other.windows:
        return False
    return replace(other, name=tensor.name, windows=tensor.windows) == tensor
