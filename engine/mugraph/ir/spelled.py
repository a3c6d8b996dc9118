"""Values that have no literal, as text: the same text only for equal values of one type.

The text of `spelled` is part of what kernel modules share (edit/module/conditions.py): it may use no
other name of this file than those it uses now.
"""

from __future__ import annotations

from hashlib import sha256
from typing import Any


def spelled(value: object) -> str | None:
    """Of numbers of NumPy's, of classes that inherit from a number or a text, of infinite ones, of members of
    enumerations, slices, sets, and small containers of these. None of anything else."""
    given: Any = value
    kind: Any = type(value)
    name = kind.__qualname__  # the module is `__main__` where the file itself is run
    if value is None or value is Ellipsis:
        return repr(value)
    if hasattr(kind, "__members__") and hasattr(value, "_name_"):
        return f"{name}.{given._name_}({spelled(given._value_)})"
    for base in (int, float, complex, str, bytes):
        if isinstance(value, base):
            return f"{name}({base.__repr__(given)})"
    if kind.__module__ == "numpy" and hasattr(kind, "tobytes"):
        if given.dtype.hasobject:
            return None
        held = given.tolist() if given.size <= 16 else sha256(given.tobytes()).hexdigest()
        return f"{name}({held}, {given.dtype.str}, {given.shape})"
    if kind.__module__ in ("fractions", "decimal", "datetime"):
        return repr(value)
    if kind.__module__ == "torch" and kind.__name__ in ("dtype", "layout", "memory_format"):
        return str(value)
    if kind is slice or kind is range:
        parts: Any = (given.start, given.stop, given.step)
    elif kind is dict and len(given) <= 16:
        parts = [one for pair in given.items() for one in pair]
    elif (kind in (tuple, list) and len(given) <= 16) or kind in (set, frozenset):
        parts = given
    else:
        return None
    said: list[str] = []
    for part in parts:
        one = spelled(part)
        if one is None:
            return None
        said.append(one)
    return f"{name}({', '.join(sorted(said) if kind in (set, frozenset) else said)})"
