"""The arguments of a command, checked: a client may send anything."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, cast

from pygls.exceptions import JsonRpcInvalidParams


def string(arguments: Sequence[object], index: int) -> str:
    """Raises JsonRpcInvalidParams, as `strings` does."""
    value = arguments[index] if index < len(arguments) else None
    if not isinstance(value, str):
        raise JsonRpcInvalidParams(f"argument {index + 1} must be a string")
    return value


def strings(arguments: Sequence[object], index: int) -> list[str] | None:
    """A list of strings; None if it is null or missing, which means all. Raises JsonRpcInvalidParams."""
    value: Any = arguments[index] if index < len(arguments) else None
    if value is None:
        return None
    if isinstance(value, str):
        return [value]
    if isinstance(value, list) and all(isinstance(one, str) for one in cast("list[object]", value)):
        return cast("list[str]", value)
    raise JsonRpcInvalidParams(f"argument {index + 1} must be a list of strings")


def is_text_mapping(given: object) -> bool:
    """Whether it maps names to texts."""
    if not isinstance(given, dict):
        return False
    items = cast("dict[object, object]", given).items()
    return all(isinstance(name, str) and isinstance(value, str) for name, value in items)
