"""Graphs without the names of values and tensors: equal descriptions are one graph, whatever its values are called.

Axes keep their names: the search puts them in order by name.
"""

from __future__ import annotations

from collections.abc import Hashable, Iterable

from mugraph.ir.ops import Op
from mugraph.ir.tensors import Tensor


class Unnamed:
    """Numbers names as it meets them: values, tensors and sources apart. One for all graphs that share names."""

    def __init__(self) -> None:
        self._values: dict[str, int] = {}
        self._tensors: dict[str, int] = {}
        self._sources: dict[str, int] = {}

    def ops(self, ops: Iterable[Op]) -> Hashable:
        return tuple([self._op(op) for op in ops])

    def tensors(self, tensors: Iterable[tuple[Tensor, Hashable]]) -> Hashable:
        """Each with what is to be equal of it beside its dimensions and type."""
        return tuple([self._tensor(tensor, layout) for tensor, layout in tensors])

    def value(self, name: str) -> int:
        return self._values.setdefault(name, len(self._values))

    def _op(self, op: Op) -> Hashable:
        inputs = tuple([self.value(name) for name in op.inputs])
        tensor = self._tensors.setdefault(op.tensor, len(self._tensors)) if op.tensor else None
        own = self.value(op.name)
        return (own, op.kind, inputs, op.axes, op.over, tensor, op.value, op.fn, op.marks, op.rows, op.columns)

    def _tensor(self, tensor: Tensor, layout: Hashable) -> Hashable:
        number = self._tensors.setdefault(tensor.name, len(self._tensors))
        source = self._sources.setdefault(tensor.source, len(self._sources)) if tensor.source else None
        return number, tensor.dims, tensor.dtype, source, layout
