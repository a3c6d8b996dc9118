"""Where a class, a function or a module is found again: its module's name, its qualified name, and the user's file."""

from __future__ import annotations

import os
import sys
from collections.abc import Mapping
from types import ModuleType
from typing import Any

from .passed import reason

_ALIASES = ("torch.nn.functional", "torch", "torch._C._nn", "torch.special", "torch.linalg", "math", "operator")
"""Where functions written in C are looked for that do not say where they are."""
_PACKAGE = os.path.dirname(os.path.dirname(os.path.dirname(os.path.dirname(os.path.abspath(__file__)))))


class NoPlace(Exception):
    """What was made while the program ran. The message says why it has no place."""


def place(value: Any) -> dict[str, Any]:
    """Raises NoPlace."""
    if isinstance(value, ModuleType):
        if sys.modules.get(value.__name__) is not value:
            raise NoPlace("which is imported under no name")
        return _said(value.__name__, "", value)
    module, name = getattr(value, "__module__", None), getattr(value, "__qualname__", "")
    if isinstance(module, str) and _found(module, name) is value:
        return _said(module, name, sys.modules[module])
    short = getattr(value, "__name__", "")
    for alias in (module, *_ALIASES) if isinstance(module, str) else _ALIASES:  # classes in C are given other names
        if _found(alias, short) is value:
            return _said(alias, short, sys.modules[alias])
    raise NoPlace("which is made while the program runs")


def _said(module: str, name: str, of: ModuleType) -> dict[str, Any]:
    return {"is": "place", "module": module, "name": name, "file": file_of(module, of.__dict__)}


def file_of(module: str, namespace: Mapping[str, Any]) -> str | None:
    """The module's file, if it is the user's."""
    path = namespace.get("__file__")
    return os.path.abspath(path) if isinstance(path, str) and is_own(path) else None


def is_own(path: str) -> bool:
    """Whether a source file is the user's: neither a library, nor Python's own, nor ours."""
    full = os.path.abspath(path)
    parts = full.split(os.sep)
    if "site-packages" in parts or "dist-packages" in parts or not full.endswith(".py"):
        return False
    return not any(full.startswith(here + os.sep) for here in (os.path.dirname(os.__file__), _PACKAGE))


def _found(module: str, name: str) -> Any:
    """None where it is not there. Raises NoPlace."""
    value: Any = sys.modules.get(module)
    for part in name.split("."):
        try:
            value = getattr(value, part)
        except AttributeError:
            return None
        except Exception as error:  # a module's or a class's own __getattr__
            raise NoPlace(f"which cannot be looked for in {module} ({reason(error)})") from None
    return value
