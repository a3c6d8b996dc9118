"""Content identity: one canonical text for equal frozen values, and digests of it."""

from __future__ import annotations

import hashlib
import json
from collections.abc import Mapping
from dataclasses import fields, is_dataclass
from typing import cast

from mugraph.kinds import Kind


def _plain(value: object) -> object:
    """JSON data for a value made of dataclasses, mappings, sequences and scalars; the type's name is part of it."""
    if is_dataclass(value) and not isinstance(value, type):
        return [type(value).__name__, {field.name: _plain(getattr(value, field.name)) for field in fields(value)}]
    if isinstance(value, Mapping):
        return {str(key): _plain(item) for key, item in cast(Mapping[object, object], value).items()}
    if isinstance(value, (tuple, list)):
        return [_plain(item) for item in cast("tuple[object, ...] | list[object]", value)]
    if isinstance(value, float):
        return repr(value)  # inf and nan are no JSON, and 1.0 is not 1
    if isinstance(value, Kind):
        return str(value)
    if value is None or isinstance(value, (bool, int, str)):
        return value
    raise TypeError(f"{type(value).__name__} has no canonical text")


def canonical(value: object) -> str:
    """The same text for equal values whatever the order of their mappings (JSON with sorted keys)."""
    return json.dumps(_plain(value), sort_keys=True, separators=(",", ":"), ensure_ascii=True)


def digest(*values: object, length: int = 64) -> str:
    """The first `length` hexadecimal digits of the SHA-256 of the values' canonical texts."""
    return hashlib.sha256(canonical(values).encode()).hexdigest()[:length]
