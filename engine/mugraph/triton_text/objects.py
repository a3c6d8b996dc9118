"""Values of the part of Python that is read, beside its own numbers, texts and sequences."""

from __future__ import annotations

import ast
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Any, cast

from mugraph.triton_text.source import Function, Module

Value = Any


@dataclass(frozen=True, eq=False)
class Context:
    """What torch.autograd hands to a forward: it may keep things in it, which nobody reads here."""

    kept: dict[str, Value]


@dataclass(frozen=True, eq=False)
class Class:
    """Of torch.autograd.Function."""

    node: ast.ClassDef
    module: Module


@dataclass(frozen=True, eq=False)
class Applied:
    forward: Function


@dataclass(frozen=True)
class Ignored:
    """A function whose call does nothing here."""


@dataclass(frozen=True)
class HostMethod:
    owner: Value
    name: str


def _split(text: str, by: str | None = None) -> tuple[str, ...]:
    return tuple(text.split(by))


HOST_METHODS: Mapping[tuple[type, str], Callable[..., Value]] = {
    **{(str, name): getattr(str, name) for name in ("startswith", "endswith", "lower", "upper", "strip")},
    (str, "split"): _split,
    (int, "bit_length"): int.bit_length,
}


class Kept(dict[Value, Value]):
    """A dictionary that outlives a call: of the module, or a default of a parameter."""


def kept(value: Value) -> Value:
    if isinstance(value, dict):
        return Kept({key: kept(one) for key, one in cast("dict[Value, Value]", value).items()})
    return tuple(map(kept, cast("tuple[Value, ...]", value))) if type(value) is tuple else value
