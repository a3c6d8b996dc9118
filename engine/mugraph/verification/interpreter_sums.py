"""Triton's interpreter adds up a tile as a GPU does after `sum_in_a_tree`: each thread adds a few of its numbers, and
what threads have is joined in a tree.

NumPy does so along the last axis alone, where it adds in pairs; along any other it adds one number after the other, and
loses ten times as many digits of a column of thousands as a GPU, or PyTorch, does.
"""

from __future__ import annotations

from typing import Any


def sum_in_a_tree(interpreter: Any) -> None:
    import numpy as np

    operations: Any = interpreter.ReduceOps
    ordinary = operations.sum

    def in_a_tree(self: Any, given: Any) -> Any:
        data, axis = given.handle.data, self.axis
        if axis is None or data.dtype.kind != "f" or axis % data.ndim == data.ndim - 1:
            return ordinary(self, given)
        along = np.ascontiguousarray(np.moveaxis(data, axis, -1))
        summed = np.sum(along, axis=-1)
        return self.to_tensor(np.expand_dims(summed, axis) if self.keep_dims else summed, given.dtype)

    operations.sum = in_a_tree
