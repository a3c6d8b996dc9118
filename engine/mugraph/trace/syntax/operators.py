"""Python's operators as functions, by the names of their syntax nodes."""

from __future__ import annotations

import operator
from collections.abc import Callable, Mapping

_Binary = Callable[[object, object], object]
_OPERATORS = {
    "Add": "add", "Sub": "sub", "Mult": "mul", "MatMult": "matmul", "Div": "truediv", "FloorDiv": "floordiv",
    "Mod": "mod", "Pow": "pow", "LShift": "lshift", "RShift": "rshift", "BitOr": "or_", "BitXor": "xor",
    "BitAnd": "and_", "Eq": "eq", "NotEq": "ne", "Lt": "lt", "LtE": "le", "Gt": "gt", "GtE": "ge",
}  # fmt: skip
BINARY: Mapping[str, _Binary] = {node: getattr(operator, name) for node, name in _OPERATORS.items()}
INPLACE: Mapping[str, _Binary] = {
    node: getattr(operator, f"i{name.rstrip('_')}") for node, name in list(_OPERATORS.items())[:13]
}
UNARY: Mapping[str, Callable[[object], object]] = {
    node: getattr(operator, name) for node, name in {"USub": "neg", "UAdd": "pos", "Invert": "invert"}.items()
}
