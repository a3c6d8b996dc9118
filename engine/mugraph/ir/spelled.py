"""Values that have no literal, as text: the same text only for equal values of one type.

The text of `spelled` is part of what kernel modules share (edit/module/conditions.py): it may use no
other name of this file than those it uses now.
"""

from __future__ import annotations

from hashlib import sha256
from typing import Any


def spelled(value: object) -> str | None:
    """Of numbers of NumPy's, of classes that inherit from a number or a text, of infinite ones, of members of
    enumerations, slices, sets, and lists, tuples and dicts of these. None of anything else."""
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
    elif kind is dict:
        parts = [one for pair in given.items() for one in pair]
    elif kind in (tuple, list, set, frozenset):
        parts = given
    else:
        return None
    if kind in (tuple, list) and len(parts) > 256 and all(type(one) in (int, float, str, bool) for one in parts):
        return f"{name}({len(parts)}, {sha256(repr(given).encode('utf-8', 'surrogatepass')).hexdigest()})"
    said: list[str] = []
    for part in parts:
        one = spelled(part)
        if one is None:
            return None
        said.append(one)
    text = ", ".join(sorted(said) if kind in (set, frozenset) else said)
    return f"{name}({text if len(text) <= 4096 else sha256(text.encode('utf-8', 'surrogatepass')).hexdigest()})"
