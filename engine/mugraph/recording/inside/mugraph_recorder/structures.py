"""What a module is made of, as a short text: its class, the shapes and types of its tensors, flags, what is absent, and
its modules, which are made of these.

Modules of one class that differ in this run other code, or the same code on other tensors: their calls are no calls of
one kind. Numbers and texts count for modules that no constructor of the user's made (`nn.Conv2d` and its stride): what
a constructor of the user's was given is known, and a layer's number makes no other layer of it.
"""

from __future__ import annotations

import hashlib
import sys
import weakref
from collections.abc import Iterator
from dataclasses import dataclass
from types import BuiltinFunctionType, FunctionType
from typing import Any, cast

from .places import is_own
from .plain import held_by

MOST_PARTS = 20_000
MOST_TEXT = 100
_SKIPPED = frozenset({"training", "_parameters", "_buffers", "_modules"})


@dataclass(eq=False)
class _Met:
    """One module, in training or not. times: how often it was asked for."""

    module: weakref.ref[object]
    times: int = 0
    text: str = ""


class Structures:
    """Of all modules that are alive. One is looked at again when it has been asked for twice, four times and so on, as
    what a first call sets up is there then."""

    def __init__(self) -> None:
        self._known: dict[tuple[int, object], _Met] = {}
        self._own: dict[type, bool] = {}

    def of(self, thing: Any, trains: object) -> str | None:
        """None for what is no module. trains: whether it is in training mode. Called before every call that is looked
        at."""
        try:
            met = self._known[id(thing), trains]
        except KeyError:
            module: Any = getattr(sys.modules.get("torch.nn"), "Module", None)
            if module is None or not isinstance(thing, module):
                return None
            place = id(thing), trains
            met = self._known[place] = _Met(weakref.ref(thing, lambda _: self._known.pop(place, None)))
        met.times += 1
        if not met.times & (met.times - 1):
            if jit_traces():  # which would see its shapes read
                met.times -= 1
            else:
                met.text = self._text(thing)
        return met.text

    def known(self, thing: Any) -> str | None:
        """What was said of it last."""
        met = self._known.get((id(thing), held_by(thing).get("training")))
        return met.text if met is not None else None

    def _text(self, module: Any) -> str:
        parts: list[str] = []
        for part in self._parts(module, frozenset()):
            parts.append(part)
            if len(parts) >= MOST_PARTS:
                break
        return hashlib.sha256("\n".join(parts).encode(errors="replace")).hexdigest()[:16]

    def _parts(self, module: Any, around: frozenset[int]) -> Iterator[str]:
        kind, held = cast("type[object]", type(module)), held_by(module)
        yield f"{kind.__module__}.{kind.__qualname__}"
        with_numbers = not self._is_made_by_own(kind)
        for name, value in list(held.items()):
            if name not in _SKIPPED and not name.startswith(("_forward", "_backward", "_state_dict", "_load_state")):
                text = _said(value, with_numbers)
                if text is not None:
                    yield f"{name}={text}"
        for of in ("_parameters", "_buffers"):
            for name, value in _pairs(held, of):
                yield f"{of}.{name}={_said(value, with_numbers)}"
        inside = around | {id(module)}
        for name, value in _pairs(held, "_modules"):
            yield f"{name}:"
            if value is not None and id(value) not in inside:
                yield from self._parts(value, inside)
        yield "."

    def _is_made_by_own(self, kind: type) -> bool:
        """Whether its constructor is in a file of the user's."""
        if kind not in self._own:
            made: Any = next((vars(one)["__init__"] for one in kind.__mro__ if "__init__" in vars(one)), None)
            code = getattr(made, "__code__", None)
            self._own[kind] = code is not None and is_own(code.co_filename)
        return self._own[kind]


def _pairs(held: dict[str, Any], of: str) -> list[tuple[str, Any]]:
    pairs: dict[str, Any] = held.get(of) or {}
    return list(pairs.items())


def jit_traces() -> bool:
    state = getattr(getattr(sys.modules.get("torch"), "_C", None), "_get_tracing_state", None)
    return state is not None and state() is not None


def _said(value: Any, with_numbers: bool) -> str | None:
    """None for what does not count."""
    kind = cast("type[object]", type(value))
    if value is None or kind is bool:
        return repr(value)
    torch: Any = sys.modules["torch"]
    if isinstance(value, torch.Tensor):
        return f"{tuple(value.shape)} {value.dtype}"
    if isinstance(value, type | FunctionType | BuiltinFunctionType):
        return f"{value.__module__}.{value.__qualname__}"
    if kind in (int, float, str) or (kind in (tuple, list) and all(type(one) in (int, float, str) for one in value)):
        return repr(value)[:MOST_TEXT] if with_numbers else None
    return f"{kind.__module__}.{kind.__qualname__}"
