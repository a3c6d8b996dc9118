"""Python's own functions, of numbers, texts and sequences."""

from __future__ import annotations

import math
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
        case "divmod":
            return divmod(arguments[0], arguments[1])
        case "any":
            return any(listed(arguments[0]))
        case "all":
            return all(listed(arguments[0]))
        case "sorted":
            return tuple(sorted(listed(arguments[0])))
        case "reversed":
            return tuple(reversed(listed(arguments[0])))
        case "print":
            return None
        case _:
            raise Unreadable(f"{name} is not read")


_MATHS = ("ceil", "floor", "sqrt", "log", "log2", "exp", "gcd", "pow", "fabs", "log10", "isqrt", "erf", "sin", "cos")
_NUMBERS = {"math.pi": math.pi, "math.e": math.e, "math.inf": math.inf, "torch.inf": math.inf, "torch.pi": math.pi}


def number_of(name: str) -> float | None:
    """Of a named constant: math.pi."""
    return _NUMBERS.get(name)


def host_math(name: str, arguments: Sequence[Any]) -> Any:
    """Of Python's module, of numbers."""
    function = name.removeprefix("math.")
    if function == "prod":
        return math.prod(listed(arguments[0]))
    if function in _MATHS and all(isinstance(one, int | float) for one in arguments):
        return getattr(math, function)(*arguments)
    raise Unreadable(f"{name} is not read")
