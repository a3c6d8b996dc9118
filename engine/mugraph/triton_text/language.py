"""What a language is asked that gives a meaning to the values of a text, and what is Python's own."""

from __future__ import annotations

import ast
import operator
from abc import ABC, abstractmethod
from collections.abc import Callable, Iterable, Mapping, Sequence
from typing import Any, Protocol

Value = Any

BINARY: Mapping[type[ast.operator], str] = {
    ast.Add: "+",
    ast.Sub: "-",
    ast.Mult: "*",
    ast.Div: "/",
    ast.FloorDiv: "//",
    ast.Mod: "%",
    ast.Pow: "**",
    ast.BitAnd: "&",
    ast.BitOr: "|",
    ast.BitXor: "^",
    ast.LShift: "<<",
    ast.RShift: ">>",
    ast.MatMult: "@",
}
COMPARED: Mapping[type[ast.cmpop], str] = {
    ast.Lt: "<",
    ast.LtE: "<=",
    ast.Gt: ">",
    ast.GtE: ">=",
    ast.Eq: "==",
    ast.NotEq: "!=",
}
OPERATORS: dict[str, Callable[[Any, Any], Any]] = {
    "+": operator.add,
    "-": operator.sub,
    "*": operator.mul,
    "/": lambda a, b: a / b,
    "//": lambda a, b: a // b,
    "%": operator.mod,
    "**": lambda a, b: a**b,
    "&": lambda a, b: a & b,
    "|": lambda a, b: a | b,
    "^": lambda a, b: a ^ b,
    "<<": lambda a, b: a << b,
    ">>": lambda a, b: a >> b,
    "<": operator.lt,
    "<=": operator.le,
    ">": operator.gt,
    ">=": operator.ge,
    "==": operator.eq,
    "!=": operator.ne,
}


class Condition(ABC):
    """A value that only `if` may ask for."""

    @abstractmethod
    def enter(self, here: dict[str, Value], place: int) -> bool:
        """Does it hold? If so, what may not be read there of the names becomes APART. place: of the statement"""

    @abstractmethod
    def leave(self) -> None:
        """What was done where it holds has been done."""


APART = object()
"""What a name stands for where it may not be read."""


class Language(Protocol):
    """What values other than Python's own numbers, texts and sequences mean."""

    def binary(self, op: str, a: Value, b: Value) -> Value: ...
    def unary(self, op: str, a: Value) -> Value: ...
    def attribute(self, owner: Value, name: str) -> Value: ...
    def subscript(self, owner: Value, key: Value) -> Value: ...
    def call(self, function: Value, arguments: Sequence[Value], named: Mapping[str, Value]) -> Value: ...
    def truth(self, value: Value) -> bool: ...
    def loop(self, iterable: Value) -> Iterable[Value]: ...


def is_host(value: Value) -> bool:
    """Is it of Python itself?"""
    return value is None or isinstance(value, bool | int | float | str | tuple | list | dict | slice)
