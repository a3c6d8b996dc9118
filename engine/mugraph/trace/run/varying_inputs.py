"""Which numbers of a run may be others at the next call, and whether the run does the same with others.

They are the numbers among the arguments that a call was given (a default stays what it is), and those that an object
keeps and that methods of its class set outside of `__init__`. What a run does with one must be arithmetic alone, whose
results are operands that PyTorch's calls are given element by element: `x * lr`, `add(x, alpha=-lr)`. It may compare
it with another number, where the result is the same with others. A number by which anything else is decided is a
constant, as are shapes, exponents, and what goes into code that is not watched.

The code is run with two numbers in place of each. What it does must differ in the operands alone.
"""

from __future__ import annotations

import ast
import inspect
import logging
from collections.abc import Callable, Hashable, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import cast

import torch

from mugraph.ir.calls import Ref
from mugraph.ir.region import Argument
from mugraph.trace.run.build import Ready
from mugraph.trace.run.tape import Compared, Happening, Record, Tape
from mugraph.trace.run.values import Values
from mugraph.trace.run.varying import Varying, Watch

_log = logging.getLogger("mugraph.trace")

_PLAIN = (int, float)
_IN_CONSTRUCTORS = frozenset({"__init__", "__new__", "__post_init__", "__setstate__"})


@dataclass(frozen=True)
class Inputs:
    """names: of the numbers that are given as ones that vary; None: all that may be. others: how far from 0 other whole
    numbers are than the call's, where other numbers are given; 0: the call's own. kept: attributes that methods of the
    object's class set. same: arguments that a run has given the same number each time, which stays what it is. whole:
    whether whole numbers are among them, or say sizes"""

    watch: Watch
    names: frozenset[str] | None
    others: int
    kept: frozenset[str] = frozenset()
    same: frozenset[str] = frozenset()
    whole: bool = True

    def given_to(self, ready: Ready) -> Ready:
        """The call with numbers that vary."""
        named = _positional(ready.function)
        named += [f"argument {at}" for at in range(len(named), len(ready.args))]
        args = [self._argument(name, value) for name, value in zip(named, ready.args, strict=False)]
        kwargs = {name: self._argument(name, value) for name, value in ready.kwargs.items()}
        owner: object = getattr(ready.function, "__self__", ready.function)
        held: Mapping[str, object] = getattr(owner, "__dict__", {})
        for name in sorted(self.kept & held.keys()):
            new = self._given(f"self.{name}", held[name])
            if new is not held[name]:
                setattr(owner, name, new)
        return replace(ready, args=args, kwargs=kwargs)

    def _argument(self, name: str, value: object) -> object:
        return value if name in self.same else self._given(name, value)

    def _given(self, name: str, value: object) -> object:
        if not isinstance(value, _PLAIN) or type(value) not in _PLAIN or (type(value) is int and not self.whole):
            return value
        if self.names is not None and name not in self.names:
            return value
        return self.watch.given(name, _another(value, self.others) if self.others else value)


def _positional(function: object) -> list[str]:
    """Names of parameters that are given by position."""
    called: object = function.forward if isinstance(function, torch.nn.Module) else function
    try:
        every = inspect.signature(cast("Callable[..., object]", called)).parameters.values()
    except (TypeError, ValueError) as error:
        _log.debug("the parameters of %r are not known: %s", called, error)
        return []
    return [one.name for one in every if one.kind in (one.POSITIONAL_ONLY, one.POSITIONAL_OR_KEYWORD)]


def _another(number: float, away: int) -> float:
    """Of the same sign, and below 1 if it is. away: from 0, of a whole number"""
    if type(number) is int:
        return number + (away if number >= 0 else -away)
    return number * 0.8125 if number else 0.3125


def set_by_methods(tree: ast.Module, owner: str | None) -> frozenset[str]:
    """Attributes that methods of a class set, beside those that make an object. owner: its qualified name"""
    body: Sequence[ast.stmt] = tree.body
    for name in owner.split(".") if owner is not None else ():
        named = (node.body for node in body if isinstance(node, ast.ClassDef) and node.name == name)
        body = next(named, list[ast.stmt]())
    functions = (node for node in body if isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef))
    methods = [node for node in functions if node.name not in _IN_CONSTRUCTORS]
    found = [node for method in methods for node in ast.walk(method) if isinstance(node, ast.Attribute)]
    stored = [node for node in found if isinstance(node.ctx, ast.Store)] if owner is not None else []
    return frozenset(node.attr for node in stored if isinstance(node.value, ast.Name) and node.value.id == "self")


def done(tape: Tape, values: Values) -> list[Hashable]:
    """What a run did, in a form that is equal where it did the same with other numbers."""
    found: list[Hashable] = []
    for event in tape.events:
        if isinstance(event, Record):
            args = tuple(_said(arg, tape) for arg in event.args)
            named = tuple((name, _said(arg, tape)) for name, arg in event.kwargs.items())
            made = tuple((number, values.infos[number]) for number in event.outputs)
            found.append((event.target, args, named, event.problem, event.in_place, made))
        elif isinstance(event, Happening):
            found.append((event.name, event.problem))
        elif isinstance(event, Compared):
            found.append((event.operator, _index(event.left), _index(event.right), event.result))
    for number, view in tape.picked.items():
        found.append((number, values.infos[number], view.base, _index(view.index)))
    return found


def _index(part: object) -> Hashable:
    """Of a place that was asked for, or of a number that was compared."""
    if isinstance(part, Varying):
        return _computed(part)
    return tuple(map(_index, cast("tuple[object, ...]", part))) if isinstance(part, tuple) else repr(part)


def _said(argument: Argument, tape: Tape) -> Hashable:
    if isinstance(argument, Ref):
        number = tape.varying.get(argument.value)
        return argument.value if number is None else _computed(number)
    if isinstance(argument, tuple):
        return tuple(_said(item, tape) for item in argument)
    return repr(argument)


def _computed(number: Varying) -> Hashable:
    origin = number.origin
    of = tuple(_computed(one) if isinstance(one, Varying) else repr(one) for one in origin.operands)
    return origin.operator, of
