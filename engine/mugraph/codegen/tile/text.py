"""Values, expressions and statements of a kernel under construction, and how they print.

A value used once, in its own region, is written into the expression that uses it when the line stays short.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field
from enum import IntEnum
from math import inf

from mugraph.codegen.tile.axes import Dim
from mugraph.codegen.tile.pads import Pad

WIDTH = 110
"""Columns of a line of generated text."""
INLINE = 64
"""Longest text that is written into another expression."""
_STRING = re.compile(r'"(?:[^"\\]|\\.)*"|\'(?:[^\'\\]|\\.)*\'')


def plus(text: str, number: int) -> str:
    """A sum as text."""
    return f"{text} {'+' if number > 0 else '-'} {abs(number)}" if number else text


class Prec(IntEnum):
    """How tightly an expression binds."""

    ADD = 1
    MUL = 2
    ATOM = 3


@dataclass(eq=False)
class Value:
    """One value in one region.

    dims:  in the kernel's order
    dtype: "f32" or the storage type of a loaded tensor; "" for a constant
    pads:  what its padded lanes hold
    named: it has a statement of its own even when used once
    """

    name: str
    dims: tuple[Dim, ...]
    dtype: str
    pads: dict[Dim, Pad]
    region: Region
    expr: Expr
    named: bool = False
    uses: int = 0
    users: set[int] = field(default_factory=set[int])
    variants: dict[str, Value] = field(default_factory=dict[str, "Value"])
    inlined: str = ""


@dataclass(frozen=True, slots=True)
class Ref:
    """An operand: `need` is what its place binds; `index` broadcasts it ("[:, None]")."""

    value: Value
    need: Prec = Prec.ADD
    index: str = ""


@dataclass(frozen=True, slots=True)
class Expr:
    parts: tuple[str | Ref, ...]
    prec: Prec = Prec.ATOM


@dataclass(eq=False)
class Assign:
    value: Value


@dataclass(eq=False)
class Line:
    """`target op expr` in the region's text: updates, stores. prunable: an index that may turn out unused."""

    target: str
    expr: Expr
    op: str = "="
    prunable: bool = False


@dataclass(eq=False)
class Block:
    """A loop or a condition, its header without the colon."""

    header: str
    body: list[Item]


Item = Assign | Line | Block


@dataclass(eq=False)
class Region:
    """The kernel's body, or a loop's: `head` holds its indices.

    before:    a loop's: what is carried through its iterations, as it begins
    backwards: a loop's: does it begin at its last iteration? None where it does not matter
    """

    parent: Region | None = None
    axis: str = ""
    level: int = 0
    head: list[Item] = field(default_factory=list["Item"])
    items: list[Item] = field(default_factory=list["Item"])
    memo: dict[str, Value] = field(default_factory=dict[str, Value])
    before: list[Item] = field(default_factory=list["Item"])
    backwards: bool | None = None
    running: dict[str, Value] = field(default_factory=dict[str, Value])
    """ROWMAX being computed by this loop -> its value in this iteration."""

    @property
    def chain(self) -> tuple[Region, ...]:
        """This region and those around it, innermost first."""
        return (self, *self.parent.chain) if self.parent else (self,)

    @property
    def bound(self) -> frozenset[str]:
        """Loops whose index is known here."""
        return frozenset(region.axis for region in self.chain if region.axis)


def number(value: float) -> str:
    """Zero, or what is less than all numbers, in Triton."""
    return 'float("-inf")' if value == -inf else repr(value)


class Printer:
    """Text of a region's statements, four spaces deep and more."""

    def render(self, items: Sequence[Item], depth: int = 1) -> list[str]:
        lines: list[str] = []
        for item in items:
            match item:
                case Assign(value):
                    text = self.expression(value.expr)
                    if self._inlines(value, text):
                        value.inlined = text
                    elif value.uses or value.named:
                        lines += wrapped(f"{value.name} = {text}", depth)
                case Line(target, expr, op):
                    text = self.expression(expr)
                    lines += wrapped(f"{target} {op} {text}" if target else text, depth)
                case Block(header, body):
                    lines.append("    " * depth + header + ":")
                    lines += self.render(body, depth + 1)
        return lines

    def expression(self, expr: Expr) -> str:
        return "".join(part if isinstance(part, str) else self._operand(part) for part in expr.parts)

    def _inlines(self, value: Value, text: str) -> bool:
        once = value.uses == 1 and value.users == {id(value.region)}
        return not value.named and once and len(text) <= INLINE

    def _operand(self, ref: Ref) -> str:
        value = ref.value
        if not value.inlined:
            return value.name + ref.index
        tight = value.expr.prec >= (Prec.ATOM if ref.index else ref.need)
        return (value.inlined if tight else f"({value.inlined})") + ref.index


def uses(expr: Expr, region: Region) -> Expr:
    """Count the operands of an expression that a statement of `region` evaluates."""
    for part in expr.parts:
        if isinstance(part, Ref):
            part.value.uses += 1
            part.value.users.add(id(region))
    return expr


def assigned(items: Iterable[Item]) -> Iterable[Value]:
    """Values in the order of their statements."""
    for item in items:
        if isinstance(item, Assign):
            yield item.value
        elif isinstance(item, Block):
            yield from assigned(item.body)


def prune(items: list[Item], printer: Printer) -> None:
    """Drop index lines nothing refers to, repeatedly."""
    while True:
        words = set(re.findall(r"\w+", " ".join(_texts(items, printer))))
        if not _drop(items, words):
            return


def _texts(items: Iterable[Item], printer: Printer) -> Iterable[str]:
    """Everything but the names that index lines define."""
    for item in items:
        match item:
            case Assign(value):
                yield printer.expression(value.expr)
            case Line(target, expr, _, prunable):
                yield printer.expression(expr) if prunable else f"{target} {printer.expression(expr)}"
            case Block(header, body):
                yield header
                yield from _texts(body, printer)


def _drop(items: list[Item], words: set[str]) -> bool:
    kept = [item for item in items if not (isinstance(item, Line) and item.prunable and item.target not in words)]
    changed = len(kept) < len(items)
    items[:] = kept
    for item in items:
        if isinstance(item, Block):
            changed = _drop(item.body, words) or changed
    return changed


def wrapped(line: str, depth: int) -> list[str]:
    """The statement on as many lines as it needs: a call one argument a line, a sum or product one term a line."""
    pad = "    " * depth
    if len(pad) + len(line) <= WIDTH:
        return [pad + line]
    call = re.match(r"(?:\w+ [-+*]?= )?[\w.]+\(", line)
    if call is not None:
        close = _closing(line, call.end() - 1)
        if not line[close + 1 :] or line[close + 1 :].startswith("."):
            lines = [pad + call.group()]
            for argument in _split(line[call.end() : close], (", ",)):
                lines += _terms(argument.removeprefix(", "), depth + 1, ",")
            return [*lines, pad + line[close:]]
    equals = _without_strings(line).find(" = ")
    if equals < 0:
        return [pad + line]
    return [f"{pad}{line[:equals]} = (", *_terms(line[equals + 3 :], depth + 1, ""), f"{pad})"]


def _terms(text: str, depth: int, end: str) -> list[str]:
    pad = "    " * depth
    if len(pad) + len(text) <= WIDTH:
        return [pad + text + end]
    separators = ((" & ",), (" + ", " - "), (" * ",))
    pieces = next((pieces for by in separators if len(pieces := _split(text, by)) > 1), [text])
    return [pad + piece.strip() for piece in pieces[:-1]] + [pad + pieces[-1].strip() + end]


def _split(text: str, separators: tuple[str, ...]) -> list[str]:
    """Pieces between separators outside all brackets and strings; each but the first begins with its separator."""
    depth, begin, pieces, code = 0, 0, list[str](), _without_strings(text)
    for at, character in enumerate(code):
        depth += (character in "([") - (character in ")]")
        if depth == 0 and at and code.startswith(separators, at):
            pieces.append(text[begin:at])
            begin = at
    return [*pieces, text[begin:]]


def _closing(text: str, opening: int) -> int:
    depth, code = 0, _without_strings(text)
    for at in range(opening, len(code)):
        depth += (code[at] in "([") - (code[at] in ")]")
        if depth == 0:
            return at
    raise ValueError(f"brackets do not close in {text!r}")


def _without_strings(text: str) -> str:
    """The text, as long as it is, with nothing in its string literals."""
    return _STRING.sub(lambda found: "_" * len(found[0]), text)
