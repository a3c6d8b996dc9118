"""Conditions on what a run has read: expressions, and what they must be where the region runs."""

from __future__ import annotations

import functools
import math
from collections.abc import Mapping, Sequence
from types import BuiltinFunctionType, FunctionType, ModuleType
from typing import cast

import torch

from mugraph.ir.spelled import spelled
from mugraph.trace.pytorch.attributes import attribute_of
from mugraph.trace.regions.user_code import library_name
from mugraph.trace.run.device_types import DeviceType
from mugraph.trace.run.varying import varying_in

Conditions = dict[str, list[str]]
"""Expression -> the source texts of the constants it may equal; an empty list: the expression must be true."""
_MOST = 16
"""Items of a list or tuple that is compared with one that is written out."""


def constant(value: object) -> str | None:
    """A literal that evaluates to the value; None if there is none."""
    if value is None or isinstance(value, bool | int | str):
        return repr(value) if type(value) in (bool, int, str, type(None)) else None
    if isinstance(value, float):
        return repr(value) if type(value) is float and math.isfinite(value) else None
    if type(value) in (tuple, list, torch.Size) and len(cast(Sequence[object], value)) <= _MOST:
        parts = [constant(item) for item in cast(Sequence[object], value)]
        if all(part is not None for part in parts):
            inner = ", ".join(part for part in parts if part is not None)
            if isinstance(value, list):
                return f"[{inner}]"
            return f"({inner},)" if len(parts) == 1 else f"({inner})"
    if type(value) is dict and len(cast(Mapping[object, object], value)) <= _MOST:
        pairs = [(constant(key), constant(item)) for key, item in cast(Mapping[object, object], value).items()]
        if all(key is not None and item is not None for key, item in pairs):
            return "{" + ", ".join(f"{key}: {item}" for key, item in pairs) + "}"
    return None


def without_literal(value: object) -> str | None:
    """The text that such a value is compared by. Numbers that may vary are none: they are the kernel's arguments."""
    return None if next(varying_in(value), None) is not None else spelled(value)


def about(expression: str, value: object, conditions: Conditions, here: str, consumed: bool = False) -> None:
    """Adds what must stay true of one object that was read.

    here:     an expression for the live-ins' device
    consumed: a tensor that is a live-in, which is checked elsewhere
    """
    text = constant(value)
    if isinstance(value, torch.Size):  # each by itself: a literal would be a tuple, and sizes may vary
        conditions.setdefault(f"len({expression})", [str(len(value))])
        for at, size in enumerate(value):
            conditions.setdefault(f"{expression}[{at}]", [repr(size)])
    elif isinstance(value, DeviceType):
        conditions.setdefault(expression, ["'cuda'", f"{here}.type"])
    elif text is not None:
        conditions.setdefault(expression, [text])
    elif isinstance(value, torch.dtype):
        conditions.setdefault(f"str({expression})", [repr(str(value))])
    elif isinstance(value, torch.device):
        if expression != here:
            conditions.setdefault(f"str({expression})", ["'cuda'", f"str({here})"])
    elif isinstance(value, torch.Tensor):
        if not consumed:
            conditions.setdefault(f"tuple({expression}.shape)", [repr(tuple(value.shape))])
            conditions.setdefault(f"str({expression}.dtype)", [repr(str(value.dtype))])
    elif (said := without_literal(value)) is not None:
        conditions.setdefault(f"_spelled({expression})", [repr(said)])
    elif isinstance(value, list | tuple | dict | torch.nn.ModuleList | torch.nn.ModuleDict):
        conditions.setdefault(f"len({expression})", [str(len(cast(Sequence[object], value)))])
    elif isinstance(value, functools.partial):
        made = cast("functools.partial[object]", value)
        about(f"{expression}.func", made.func, conditions, here)
        about(f"{expression}.args", made.args, conditions, here)
        about(f"{expression}.keywords", made.keywords, conditions, here)
    elif isinstance(value, FunctionType | BuiltinFunctionType | type):
        name = None if _is_method(value) else library_name(value)
        if name is not None:
            conditions.setdefault(f"_is_the({expression}, {name!r})", [])
        elif not _is_method(value):
            conditions.setdefault(f"getattr({expression}, '__qualname__', None)", [repr(value.__qualname__)])


def _is_method(value: object) -> bool:
    owner = attribute_of(value, "__self__")
    return isinstance(value, BuiltinFunctionType) and owner is not None and not isinstance(owner, ModuleType | type)


def merge(first: Conditions, other: Conditions) -> Conditions:
    """The conditions of two executions that did the same. An expression may equal the constant of either."""
    merged = dict(first)
    for expression, constants in other.items():
        mine = merged.get(expression)
        if mine is None:
            merged[expression] = constants
        elif constants:
            merged[expression] = list(dict.fromkeys((*mine, *constants)))
    return merged


def as_expressions(conditions: Conditions) -> tuple[str, ...]:
    guards: list[str] = []
    for expression, constants in conditions.items():
        if not constants:
            guards.append(expression)
        elif len(constants) > 1:
            guards.append(f"{expression} in ({', '.join(constants)})")
        elif constants[0] in ("None", "True", "False"):
            guards.append(f"{expression} is {constants[0]}")
        else:
            guards.append(f"{expression} == {constants[0]}")
    return tuple(guards)
