"""Numbers that may be others at the next call: a learning rate, the count of steps, a temperature.

Code is run with numbers that remember what they are computed from. What it does with them by arithmetic alone stays
known; whoever rounds one or prints it decides by it. Where code compares one with another number, the
result is known, and must be the same at the next call.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from typing import cast

import torch

from mugraph.trace.syntax.operators import BINARY, UNARY

FUNCTIONS: Mapping[Callable[..., object], str] = {
    getattr(math, name): f"_math.{name}"
    for name in ("sqrt", "exp", "expm1", "log", "log1p", "log2", "sin", "cos", "tan", "tanh", "pow")
}
"""Functions of numbers, with what they are called where the text is run."""
_SYMBOLS = {"Add": "+", "Sub": "-", "Mult": "*", "Div": "/", "Pow": "**"}
_SIGNS = {"USub": "-", "UAdd": "+"}
COMPARISONS = {"Eq": "==", "NotEq": "!=", "Lt": "<", "LtE": "<=", "Gt": ">", "GtE": ">="}


@dataclass(frozen=True, eq=False)
class Origin:
    """What a number is computed from. operator: of syntax, or a function's name; "" for a number that is given, whose
    name is its one operand. at: when (`Watch.now`)"""

    operator: str
    operands: tuple[object, ...]
    at: int

    def roots(self) -> Iterator[str]:
        """The names of the given numbers in it."""
        if not self.operator:
            yield str(self.operands[0])
        for one in self.operands:
            if isinstance(one, Varying):
                yield from one.origin.roots()


class AllDecided(BaseException):  # so that no `except Exception` of the user's takes it
    """The run need not go on: it decides by each of its numbers."""


@dataclass
class Watch:
    """What a run does with numbers that vary. now: a number that grows from statement to statement. forget: is told of
    tensors that follow from one. names: of the numbers that were given; decides: those by which the run decides;
    comparisons: with other numbers, in their order: the names in each, and what it gives"""

    now: Callable[[], int] = lambda: 0
    forget: Callable[[object], None] = lambda _: None
    names: set[str] = field(default_factory=set[str])
    decides: set[str] = field(default_factory=set[str])
    comparisons: list[tuple[frozenset[str], bool]] = field(default_factory=list[tuple[frozenset[str], bool]])
    is_on: bool = True

    @property
    def compared(self) -> frozenset[str]:
        return frozenset[str]().union(*(names for names, _ in self.comparisons))

    def flipped(self, other: Watch) -> frozenset[str]:
        """The names in the first comparison that gives something else in the other run."""
        pairs = zip(self.comparisons, other.comparisons, strict=False)
        return next((names for (names, result), (_, there) in pairs if result is not there), frozenset[str]())

    def given(self, name: str, value: float) -> Varying:
        self.names.add(name)
        return made(value, Origin("", (name,), -1), self)

    def decided(self, value: Varying) -> None:
        """Raises AllDecided where no other number is left."""
        if self.is_on:
            self.decides.update(value.origin.roots())
            if self.decides == self.names:
                raise AllDecided


class Varying:
    """The part that whole numbers and others have in common."""

    origin: Origin
    watch: Watch
    tensor: object = None
    """That stands for it where calls are written down (varying_operands.py)."""

    def plain(self) -> float:
        """Without what it remembers."""
        return int.__int__(self) if isinstance(self, int) else float.__float__(cast("float", self))

    def decide(self) -> float:
        """The number, which is about to be used for something else than arithmetic."""
        self.watch.decided(self)
        return self.plain()


def made(value: float, origin: Origin, watch: Watch) -> Varying:
    """The number, with what it is computed from."""
    new: Varying = _Whole(value) if type(value) is int else _Real(value)
    new.origin, new.watch = origin, watch
    return new


def varying_in(value: object) -> Iterator[Varying]:
    """Those among arguments, and in lists, tuples, slices and tables of these."""
    if isinstance(value, Varying):
        yield value
    elif isinstance(value, slice):
        whole = cast("slice[object, object, object]", value)
        yield from varying_in((whole.start, whole.stop, whole.step))
    elif type(value) in (list, tuple):
        for item in cast("Sequence[object]", value):
            yield from varying_in(item)
    elif type(value) is dict:
        for item in cast("Mapping[object, object]", value).values():
            yield from varying_in(item)


def decide(value: object, beside: object = None) -> None:
    """Numbers that vary in `value` decide, unless they are for PyTorch, beside a tensor."""
    if not isinstance(beside, torch.Tensor):
        for number in varying_in(value):
            number.decide()


def computed(operator: str, function: Callable[..., object], operands: Sequence[object]) -> object:
    """What a function gives. Of numbers of which some vary it is one that varies, where its text can be written."""
    of = next((one for one in operands if isinstance(one, Varying)), None)
    if of is None or any(isinstance(one, torch.Tensor) for one in operands):
        return function(*operands)
    if not all(isinstance(one, int | float) for one in operands):
        of.decide()  # as of `"-" * n`: what C code reads of a whole number is not seen
        return function(*operands)
    plain = [one.plain() if isinstance(one, Varying) else one for one in operands]
    result = function(*plain)
    known = operator in _SYMBOLS or operator in _SIGNS or operator in FUNCTIONS.values()
    if known and type(result) in (int, float) and all(type(one) in (int, float) for one in plain):
        return made(cast("float", result), Origin(operator, tuple(operands), of.watch.now()), of.watch)
    for one in varying_in([*operands]):
        one.decide()
    return result


def compared(operator: str, function: Callable[..., object], left: object, right: object) -> bool | None:
    """What a comparison of two numbers gives of which one varies at least; None where it is none."""
    both = (left, right)
    plain = [one.plain() if isinstance(one, Varying) else one for one in both]
    if operator not in COMPARISONS or all(one is other for one, other in zip(plain, both, strict=True)):
        return None
    if not all(type(one) in (int, float) for one in plain):
        return None
    result = bool(function(*plain))
    numbers = [*varying_in(both)]
    numbers[0].watch.comparisons.append((frozenset(name for one in numbers for name in one.origin.roots()), result))
    return result


def literal(number: object) -> str:
    """A number as Python text."""
    if isinstance(number, float) and not math.isfinite(number):
        return f"{'-' if number < 0 else ''}_math.{'nan' if math.isnan(number) else 'inf'}"
    return repr(number)


def text_of(number: Varying, names: Mapping[int, str], since: float) -> str | None:
    """The number as Python text; None where something it needs has no name.

    names: by id, what numbers are called. since: what was computed before then must have a name, as the constants in it
    are no part of what is read from then on
    """
    if id(number) in names:
        return names[id(number)]
    origin = number.origin
    if not origin.operator or origin.at < since:
        return None
    texts: list[str] = []
    for one in origin.operands:
        text = text_of(one, names, since) if isinstance(one, Varying) else literal(one)
        if text is None:
            return None
        texts.append(text)
    if origin.operator in _SYMBOLS:
        return f"({texts[0]} {_SYMBOLS[origin.operator]} {texts[1]})"
    if origin.operator in _SIGNS:
        return f"({_SIGNS[origin.operator]}{texts[0]})"
    return f"{origin.operator}({', '.join(texts)})"


def _arithmetic(operator: str, reflected: bool) -> Callable[[Varying, object], object]:
    def compute(self: Varying, other: object) -> object:
        if not isinstance(other, int | float):
            return NotImplemented
        return computed(operator, BINARY[operator], (other, self) if reflected else (self, other))

    return compute


def _sign(operator: str) -> Callable[[Varying], object]:
    return lambda self: computed(operator, UNARY[operator], (self,))


def _deciding(name: str, kind: type) -> Callable[..., object]:
    own = getattr(kind, name)

    def decide(self: Varying, *others: object) -> object:
        self.decide()
        return own(self, *others)

    return decide


def _methods(kind: type) -> dict[str, object]:
    """Of a class of numbers: arithmetic, and what decides."""
    found: dict[str, object] = {}
    for operator, name in {"Add": "add", "Sub": "sub", "Mult": "mul", "Div": "truediv", "Pow": "pow"}.items():
        found |= {f"__{name}__": _arithmetic(operator, False), f"__r{name}__": _arithmetic(operator, True)}
    found |= {"__neg__": _sign("USub"), "__pos__": _sign("UAdd")}
    wanted = """eq ne lt le gt ge bool hash int float index trunc round floor ceil floordiv rfloordiv mod rmod divmod
    rdivmod format str repr abs and rand or ror xor rxor lshift rlshift rshift rrshift invert reduce reduce_ex"""
    for name in (f"__{one}__" for one in wanted.split()):
        if hasattr(kind, name):
            found[name] = _deciding(name, kind)
    return found


class _Real(Varying, float):
    pass


class _Whole(Varying, int):
    pass


for _class, _kind in ((_Real, float), (_Whole, int)):
    for _name, _method in _methods(_kind).items():
        setattr(_class, _name, _method)
