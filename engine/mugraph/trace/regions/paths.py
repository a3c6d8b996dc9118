"""How user code can name an object at one point of a function: `x`, `self.norm.weight`, `caches[0]`."""

from __future__ import annotations

import enum
import functools
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
    BuiltinFunctionType, MethodType, str, bytes, int, float, complex, type(None),
    torch.dtype, torch.device, torch.Size, torch.layout, enum.Enum, slice, range,
)  # fmt: skip
_LEAVES = (torch.Tensor, type, ModuleType, FunctionType)
"""What has a name and no parts."""


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
    elif isinstance(value, functools.partial):
        made = cast("functools.partial[object]", value)
        yield from ((".func", made.func), (".args", made.args), (".keywords", made.keywords))
    else:
        attributes = getattr(value, "__dict__", None)
        if isinstance(attributes, dict):
            for name, part in cast(Mapping[str, object], attributes).items():
                if _NAME.match(name):
                    yield f".{name}", part


@dataclass
class Paths:
    """Expressions by the identity of the objects they evaluate to. The shortest come first, in the order of the roots.

    kept: the objects that have an expression, so that their ids stay theirs
    """

    expressions: dict[int, str] = field(default_factory=dict[int, str])
    kept: list[object] = field(default_factory=list[object])

    @staticmethod
    def of(roots: Iterable[tuple[str, object]]) -> Paths:
        paths = Paths()
        paths.add(roots)
        return paths

    def add(self, roots: Iterable[tuple[str, object]]) -> None:
        """What has an expression already keeps it."""
        queue: deque[tuple[str, object]] = deque(roots)
        while queue and len(self.expressions) < _LIMIT:
            expression, value = queue.popleft()
            if isinstance(value, _ATOMS) or id(value) in self.expressions:
                continue
            self.expressions[id(value)] = expression
            self.kept.append(value)
            if not isinstance(value, _LEAVES):
                queue.extend((expression + suffix, part) for suffix, part in _children(value))

    def get(self, value: object) -> str | None:
        return self.expressions.get(id(value))

    def tensors(self) -> Iterator[tuple[str, torch.Tensor]]:
        for value in self.kept:
            if isinstance(value, torch.Tensor):
                yield self.expressions[id(value)], value
