"""The order in which a value's dimensions lie in memory."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TypeVar

from mugraph.ir.calls import TensorInfo

_T = TypeVar("_T")

Order = tuple[int, ...]
"""Dimensions, that of the largest stride first."""


def memory_order(info: TensorInfo) -> Order:
    """Of a value whose elements fill its memory, each once; of any other, and of one that lies row by row, the order of
    its dimensions. Dimensions of size 1 come first: they have no place."""
    usual = tuple(range(len(info.shape)))
    long = [dim for dim in usual if info.shape[dim] > 1]
    order = sorted(long, key=lambda dim: -info.strides[dim])
    if order == long or not _is_dense(info, order):
        return usual
    return (*(dim for dim in usual if info.shape[dim] <= 1), *order)


def inverse(order: Order) -> Order:
    """Where each dimension is in the order: what `permute` takes to undo it."""
    return tuple(order.index(dim) for dim in range(len(order)))


def in_order(order: Order, dims: Sequence[_T]) -> tuple[_T, ...]:
    """What belongs to each dimension, in the order."""
    return tuple(dims[dim] for dim in order)


def is_dense(info: TensorInfo) -> bool:
    """Do its elements fill its memory, each once, in whichever order?"""
    long = (dim for dim in range(len(info.shape)) if info.shape[dim] > 1)
    return _is_dense(info, sorted(long, key=lambda dim: -info.strides[dim]))


def _is_dense(info: TensorInfo, order: Sequence[int]) -> bool:
    step = 1
    for dim in reversed(order):
        if info.strides[dim] != step:
            return False
        step *= info.shape[dim]
    return True
