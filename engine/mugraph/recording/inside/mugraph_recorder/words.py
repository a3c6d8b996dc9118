"""A value as a `# mugraph:` comment writes it, tensors by type and shape, never by content."""

from __future__ import annotations

import dataclasses
import enum
import math
import re
from collections.abc import Mapping
from types import BuiltinFunctionType, FunctionType, ModuleType
from typing import Any, cast

MOST = 300
"""Characters of one value's text; what takes more cannot be described."""
_DTYPES = {
    "float16": "f16", "bfloat16": "bf16", "float32": "f32", "float64": "f64", "int64": "i64", "int32": "i32",
    "int16": "i16", "int8": "i8", "uint8": "u8", "bool": "bool", "float8_e4m3fn": "f8e4m3",
    "float8_e5m2": "f8e5m2", "complex64": "c64",
}  # fmt: skip
_CUDA = re.compile(r"cuda(:\d+)?")


class Opaque(Exception):
    """A value that has no text. The message is its type's name."""


def words(value: object, tensor: type, namespace: Mapping[str, object], depth: int = 0) -> str:
    """The text. tensor: torch.Tensor. namespace: of the module that will evaluate it. Raises Opaque."""
    text = _words(value, tensor, namespace, depth)
    if len(text) > MOST:
        raise Opaque(type(value).__name__)
    return text


def _words(value: object, tensor: type, namespace: Mapping[str, object], depth: int) -> str:
    kind = type(value)
    if isinstance(value, tensor):
        return _tensor(cast(Any, value))
    if value is None or kind is bool or kind is int:
        return repr(value)
    if isinstance(value, enum.Enum):
        return f"{_named(kind, namespace)}.{value.name}"
    if kind is float:
        number = cast(float, value)
        return repr(number) if math.isfinite(number) else f"float({str(number)!r})"
    if kind is str:  # tracing needs no GPU and sees none
        return repr("cpu" if _CUDA.fullmatch(cast(str, value)) else value)
    if depth > 4:
        raise Opaque(kind.__name__)
    if kind in (tuple, list) or kind.__name__ == "Size":
        items = [words(item, tensor, namespace, depth + 1) for item in cast("list[object]", value)]
        return f"[{', '.join(items)}]" if kind is list else f"({', '.join(items)}{',' * (len(items) == 1)})"
    if kind is dict:
        pairs = cast("dict[object, object]", value)
        if any(type(key) not in (str, int) or isinstance(item, tensor) for key, item in pairs.items()):
            raise Opaque(kind.__name__)
        inside = [f"{key!r}: {words(item, tensor, namespace, depth + 1)}" for key, item in pairs.items()]
        return "{" + ", ".join(inside) + "}"
    if kind.__module__ == "torch" and kind.__name__ == "dtype":
        return _torch(str(value), namespace)
    if kind.__module__ == "torch" and kind.__name__ == "device":
        return "'cpu'"
    if isinstance(value, type | FunctionType | BuiltinFunctionType):
        return _named(value, namespace)
    if dataclasses.is_dataclass(value):
        given = [
            f"{field.name}={words(getattr(value, field.name), tensor, namespace, depth + 1)}"
            for field in dataclasses.fields(value)
            if field.init and not _is_default(field, getattr(value, field.name))
        ]
        return f"{_named(kind, namespace)}({', '.join(given)})"
    raise Opaque(kind.__name__)


def _tensor(value: Any) -> str:
    dtype = _DTYPES.get(str(value.dtype).removeprefix("torch."))
    if dtype is None:
        raise Opaque(str(value.dtype))
    shape = [int(size) for size in value.shape]
    if not shape and dtype == "bool":
        raise Opaque("a bool tensor without dimensions")  # "bool" alone means Python's
    return f"{dtype}[{', '.join(map(str, shape))}]" if shape else dtype


def _torch(text: str, namespace: Mapping[str, object]) -> str:
    """ "torch.float16", if the module can say it."""
    if not isinstance(namespace.get("torch"), ModuleType):
        raise Opaque("torch.dtype")
    return text


def _named(value: Any, namespace: Mapping[str, object]) -> str:
    """How the module can say a class or a function: by its own name there, or through a module imported there."""
    name = getattr(value, "__name__", "")
    if name.isidentifier():
        if namespace.get(name) is value:
            return name
        for known, module in namespace.items():
            if isinstance(module, ModuleType) and module.__dict__.get(name) is value:
                return f"{known}.{name}"
    raise Opaque(name or type(value).__name__)


def _is_default(field: dataclasses.Field[Any], value: object) -> bool:
    default = field.default
    return type(default) is type(value) and isinstance(value, bool | int | float | str | None) and default == value
