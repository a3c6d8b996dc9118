"""What objects are, without asking them: nothing of the program's is called."""

from __future__ import annotations

from types import BuiltinFunctionType
from typing import Any, cast

HEAP_TYPE = 1 << 9
"""Py_TPFLAGS_HEAPTYPE: of classes that a class statement made, not C."""


def plain(kind: type) -> bool:
    """Whether an object is its attributes: no base of its class is written in C, `object` apart. Such classes may be
    made at run time, as pybind11's are; then they have a `__new__` that is."""
    made = (base for base in kind.__mro__ if base is not object)
    return all(
        base.__flags__ & HEAP_TYPE and not isinstance(base.__dict__.get("__new__"), BuiltinFunctionType)
        for base in made
    )


def held_by(value: object) -> dict[str, Any]:
    """Its attributes, without asking it."""
    try:
        return cast("dict[str, Any]", object.__getattribute__(value, "__dict__"))
    except AttributeError:
        return {}


def numbers_of(value: Any, most: int) -> list[Any] | None:
    """Of an array or a number of NumPy's, in their order, as Python has them; None where it holds others or more."""
    kind = getattr(getattr(value, "dtype", None), "kind", "")
    if kind not in ("b", "i", "u", "f") or value.size > most:
        return None
    return [one.item() for one in value.reshape(-1)]
