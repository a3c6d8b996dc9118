"""What a language is asked that gives a meaning to the values of a text, and what is Python's own."""

from __future__ import annotations

import ast
import operator
from abc import ABC, abstractmethod
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass
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


class Loop(ABC):
    """What is iterated over where not all blocks go round equally often."""

    @abstractmethod
    def go_round(self, once: Callable[[Value], None], here: dict[str, Value], body: Sequence[ast.stmt]) -> None:
        """once: the body, with this value of the loop's variable. Names that are not the same after it for all blocks
        are unsettled. Raises Diverges where the blocks have to be run apart."""

    @abstractmethod
    def apart(self) -> Exception:
        """What has the blocks run apart."""


@dataclass(frozen=True, eq=False)
class Unsettled:
    """What a name stands for that may be something else in each block: only those that are run apart can say what.
    apart: the exception that has them run so"""

    apart: Callable[[], Exception]


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
    def loop(self, iterable: Value) -> Iterable[Value] | Loop: ...


def is_host(value: Value) -> bool:
    """Is it of Python itself?"""
    return value is None or isinstance(value, bool | int | float | str | tuple | list | dict | slice)
