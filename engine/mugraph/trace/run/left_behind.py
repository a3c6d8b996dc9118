"""What runs without numbers have left in the module: tables that keep tensors from call to call, and global names.

The run of another function would find there what no program has that calls this function first. A run on real tensors,
of the same function too, would take a tensor that has no numbers out of such a table.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import cast

from torch._subclasses.fake_tensor import FakeTensor

_DEPTH = 3
"""Of containers within each other that are looked into."""


@dataclass
class LeftBehind:
    """namespace: the module's names, and what they meant when it had been imported"""

    namespace: dict[str, object]
    _values: dict[str, object] = field(init=False)
    _lists: dict[str, list[object]] = field(init=False)
    _tables: dict[str, dict[object, object]] = field(init=False)

    def __post_init__(self) -> None:
        self._values = dict(self.namespace)
        self._lists = {
            name: list(cast("list[object]", value)) for name, value in self._values.items() if type(value) is list
        }
        self._tables = {
            name: dict(cast("dict[object, object]", value))
            for name, value in self._values.items()
            if isinstance(value, dict)
        }

    def taken_out(self) -> None:
        """What has no numbers is again what it was."""
        for name, value in list(self.namespace.items()):
            if name.startswith("__") or not _has_none(value):
                continue
            if name not in self._values:
                del self.namespace[name]
                continue
            before = self.namespace[name] = self._values[name]
            if name in self._tables:
                table = cast("dict[object, object]", before)
                table.clear()
                table.update(self._tables[name])
            elif name in self._lists:
                cast("list[object]", before)[:] = self._lists[name]


def _has_none(value: object, depth: int = _DEPTH) -> bool:
    """Whether it is, or holds, a tensor without numbers."""
    if isinstance(value, FakeTensor):
        return True
    if depth == 0 or not isinstance(value, list | tuple | dict):
        return False
    items = cast("Mapping[object, object]", value).values() if isinstance(value, dict) else cast("list[object]", value)
    return any(_has_none(item, depth - 1) for item in items)
