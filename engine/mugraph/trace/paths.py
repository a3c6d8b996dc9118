"""How user code can name an object at one point of a function: `x`, `self.norm.weight`, `caches[0]`."""

from __future__ import annotations

import enum
import re
from collections import deque
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from types import BuiltinFunctionType, FunctionType, MethodType, ModuleType
from typing import cast

import torch

_NAME = re.compile(r"[^\W\d]\w*\Z")
_LIMIT = 50_000
_ATOMS = (
    type, ModuleType, FunctionType, BuiltinFunctionType, MethodType, str, bytes, int, float, complex, type(None),
    torch.dtype, torch.device, torch.Size, torch.layout, enum.Enum, slice, range,
)  # fmt: skip


def _children(value: object) -> Iterator[tuple[str, object]]:
    """What can be read from an object without running any code of the user's: (suffix of the expression, part)."""
    if isinstance(value, torch.nn.Module):
        indexed = isinstance(value, torch.nn.ModuleList | torch.nn.Sequential | torch.nn.ParameterList)
        keyed = isinstance(value, torch.nn.ModuleDict | torch.nn.ParameterDict)
        for kind in ("_parameters", "_buffers", "_modules"):
            parts = cast(Mapping[str, object], value.__dict__.get(kind, {}))
            for name, part in parts.items():
                if indexed and name.isdigit():
                    yield f"[{name}]", part
                elif keyed:
                    yield f"[{name!r}]", part
                elif _NAME.match(name):
                    yield f".{name}", part
                else:
                    yield f".{kind}[{name!r}]", part
        for name, part in value.__dict__.items():
            if not name.startswith("_") or not hasattr(torch.nn.Module, name):
                yield f".{name}", part
    elif isinstance(value, dict):
        for key, part in cast(Mapping[object, object], value).items():
            if isinstance(key, str | int):
                yield f"[{key!r}]", part
    elif isinstance(value, list | tuple):
        for index, part in enumerate(cast(Sequence[object], value)):
            yield f"[{index}]", part
    else:
        attributes = getattr(value, "__dict__", None)
        if isinstance(attributes, dict):
            for name, part in cast(Mapping[str, object], attributes).items():
                if _NAME.match(name):
                    yield f".{name}", part


@dataclass
class Paths:
    """Expressions by the identity of what they evaluate to; the shortest first, in the order the roots are given."""

    expressions: dict[int, str] = field(default_factory=dict[int, str])
    _kept: list[object] = field(default_factory=list[object])  # so that an id stays what it is

    @staticmethod
    def of(roots: Iterable[tuple[str, object]]) -> Paths:
        paths = Paths()
        queue: deque[tuple[str, object]] = deque(roots)
        while queue and len(paths.expressions) < _LIMIT:
            expression, value = queue.popleft()
            if isinstance(value, _ATOMS) or id(value) in paths.expressions:
                continue
            paths.expressions[id(value)] = expression
            paths._kept.append(value)
            if not isinstance(value, torch.Tensor):
                queue.extend((expression + suffix, part) for suffix, part in _children(value))
        return paths

    def get(self, value: object) -> str | None:
        return self.expressions.get(id(value))

    def tensors(self) -> Iterator[tuple[str, torch.Tensor]]:
        for value in self._kept:
            if isinstance(value, torch.Tensor):
                yield self.expressions[id(value)], value
