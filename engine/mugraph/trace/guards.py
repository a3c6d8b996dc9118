"""What must hold at run time for a region to be the same function: every outside constant that the run has read.

A run is a function of the tensors it consumes, their shapes, types and layouts (which generated code checks by
itself), and the other objects it reads. The latter become guards: numbers and flags by value, modules by type and by
having no hooks, sequences by length. Branches need no guards of their own: what decides them has been read.
"""

from __future__ import annotations

import math
from collections.abc import Iterable, Mapping, Sequence
from types import BuiltinFunctionType, FunctionType
from typing import cast

import torch

from mugraph.trace.paths import Paths
from mugraph.trace.tape import Event, Loaded, ModuleCalled

Conditions = dict[str, list[str]]
"""Expression -> the source texts of the constants it may equal; an empty list: the expression must be true."""

_USES_TRAINING = (
    torch.nn.modules.dropout._DropoutNd,  # pyright: ignore[reportPrivateUsage]
    torch.nn.modules.batchnorm._NormBase,  # pyright: ignore[reportPrivateUsage]
    torch.nn.MultiheadAttention,
    torch.nn.RNNBase,
    torch.nn.RReLU,
)


# Said by the parameters' shapes already, or by `_USES_TRAINING`
_IMPLIED = frozenset({"training", "in_features", "out_features", "in_channels", "out_channels", "num_features"})


def _constant(value: object) -> str | None:
    """A literal that evaluates to the value; None if there is none."""
    if value is None or isinstance(value, bool | int | str):
        return repr(value) if type(value) in (bool, int, str, type(None)) else None
    if isinstance(value, float):
        return repr(value) if type(value) is float and math.isfinite(value) else None
    if type(value) in (tuple, list, torch.Size) and len(cast(Sequence[object], value)) <= 16:
        parts = [_constant(item) for item in cast(Sequence[object], value)]
        if all(part is not None for part in parts):
            inner = ", ".join(part for part in parts if part is not None)
            if isinstance(value, list):
                return f"[{inner}]"
            return f"({inner},)" if len(parts) == 1 else f"({inner})"
    return None


def about(expression: str, value: object, conditions: Conditions, here: str, consumed: bool = False) -> None:
    """Adds what must stay true of one object that was read.

    here: an expression for the live-ins' device. consumed: a tensor that is a live-in, checked elsewhere
    """
    constant = _constant(value)
    if constant is not None:
        conditions.setdefault(expression, [constant])
    elif isinstance(value, torch.dtype):
        conditions.setdefault(f"str({expression})", [repr(str(value))])
    elif isinstance(value, torch.device):
        if expression != here:
            conditions.setdefault(f"str({expression})", ["'cuda'", f"str({here})"])
    elif isinstance(value, torch.Tensor):
        if not consumed:
            conditions.setdefault(f"tuple({expression}.shape)", [repr(tuple(value.shape))])
            conditions.setdefault(f"str({expression}.dtype)", [repr(str(value.dtype))])
    elif isinstance(value, list | tuple | dict | torch.nn.ModuleList | torch.nn.ModuleDict):
        conditions.setdefault(f"len({expression})", [str(len(cast(Sequence[object], value)))])
    elif isinstance(value, FunctionType | BuiltinFunctionType) and "." in expression and not _is_method(value):
        conditions.setdefault(f"getattr({expression}, '__name__', None)", [repr(value.__name__)])


def _is_method(value: FunctionType | BuiltinFunctionType) -> bool:
    return isinstance(value, BuiltinFunctionType) and value.__self__ is not None


def _about_module(expression: str, module: torch.nn.Module, conditions: Conditions) -> None:
    kind = type(module)
    conditions.setdefault(f"type({expression}).__qualname__", [repr(kind.__qualname__)])
    for hooks in ("_forward_hooks", "_forward_pre_hooks"):
        conditions.setdefault(f"not {expression}.{hooks}", [])
    if kind.__module__.startswith("torch.nn"):
        if isinstance(module, torch.nn.ModuleList | torch.nn.Sequential | torch.nn.ModuleDict):
            conditions.setdefault(f"len({expression})", [str(len(module))])
        # Library code is not watched, so whatever it may have read of the module counts
        for name, value in module.__dict__.items():
            constant = _constant(value)
            if constant is not None and not name.startswith("_") and name not in _IMPLIED:
                conditions.setdefault(f"{expression}.{name}", [constant])
        if isinstance(module, _USES_TRAINING):
            conditions.setdefault(f"{expression}.training", [repr(module.training)])


def conditions_of(
    events: Iterable[Event], names: Mapping[str, object], paths: Paths, consumed: set[int], here: str
) -> Conditions:
    """Of the events of a region.

    names:    the region's own names that it reads, as they were before it
    paths:    expressions for objects that were there before it
    consumed: ids of the live-in tensors
    here:     an expression for the device they are on
    """
    conditions: Conditions = {}
    for name, value in names.items():
        if isinstance(value, FunctionType | BuiltinFunctionType):
            conditions[f"getattr({name}, '__qualname__', None)"] = [repr(value.__qualname__)]
        else:
            about(name, value, conditions, here, id(value) in consumed)
    for event in events:
        if isinstance(event, ModuleCalled):
            expression = paths.get(event.module)
            if expression is not None:
                _about_module(expression, event.module, conditions)
        elif isinstance(event, Loaded) and event.name != "[]" and not isinstance(event.base, type):
            base = paths.get(event.base)
            if base is not None and not _is_bound_method(event.value):
                suffix = event.name if event.name.startswith("[") else f".{event.name}"
                about(f"{base}{suffix}", event.value, conditions, here, id(event.value) in consumed)
    return conditions


def _is_bound_method(value: object) -> bool:
    return getattr(value, "__self__", None) is not None and callable(value) and not isinstance(value, torch.nn.Module)


def merge(first: Conditions, other: Conditions) -> Conditions:
    """What holds of two executions that did the same: an expression may have either's constant."""
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
