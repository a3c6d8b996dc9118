"""Python's own functions, of numbers, texts and sequences."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from mugraph.triton_text.refusals import Unreadable
from mugraph.triton_text.source import listed


def host_builtin(name: str, arguments: Sequence[Any]) -> Any:
    """Of numbers, texts and sequences of Python."""
    match name:
        case "min":
            return min(*arguments)
        case "max":
            return max(*arguments)
        case "len":
            return len(arguments[0])
        case "int":
            return int(arguments[0])
        case "float":
            return float(arguments[0])
        case "bool":
            return bool(arguments[0])
        case "abs":
            return abs(arguments[0])
        case "round":
            return round(*arguments)
        case "sum":
            return sum(listed(arguments[0]))
        case "pow":
            return arguments[0] ** arguments[1]
        case "tuple" | "list":
            return listed(arguments[0])
        case "zip":
            return tuple(zip(*map(listed, arguments), strict=False))
        case "enumerate":
            return tuple(enumerate(listed(arguments[0])))
        case "str":
            return str(arguments[0])
        case "print":
            return None
        case _:
            raise Unreadable(f"{name} is not read")
