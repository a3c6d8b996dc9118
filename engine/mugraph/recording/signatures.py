"""Whether recorded arguments are arguments of the function as it is written now."""

from __future__ import annotations

import ast
from collections.abc import Mapping
from dataclasses import dataclass

from mugraph.trace.syntax.definitions import definitions
from mugraph.trace.syntax.nodes import Function


@dataclass(frozen=True)
class Names:
    """What a function can be called with. needed: parameters without a default; any_name: it takes `**kwargs`."""

    all: frozenset[str]
    needed: frozenset[str]
    any_name: bool

    def take(self, arguments: Mapping[str, str]) -> bool:
        return self.needed <= arguments.keys() and (self.any_name or arguments.keys() <= self.all)


def signatures(text: str) -> dict[str, Names]:
    """By qualified name; empty for a text that does not parse."""
    try:
        return {
            one.name: _names(one.node, one.owner is not None)
            for one in definitions(ast.parse(text))
            if not isinstance(one.node, ast.ClassDef)
        }
    except (SyntaxError, ValueError, RecursionError, MemoryError):
        return {}


def fits(
    known: Mapping[str, Names], function: str, arguments: Mapping[str, str], init: Mapping[str, str] | None
) -> bool:
    """Arguments with a star are of a function that takes any number."""
    names = known.get(function)
    if names is None or not names.take({name: text for name, text in arguments.items() if not name.startswith("*")}):
        return False
    constructor = known.get(f"{function.rpartition('.')[0]}.__init__")
    return init is None or constructor is None or constructor.take(init)


def _names(function: Function, is_method: bool) -> Names:
    arguments = function.args
    plain = [*arguments.posonlyargs, *arguments.args]
    needed = {one.arg for one in plain[: len(plain) - len(arguments.defaults)]}
    needed |= {
        one.arg for one, default in zip(arguments.kwonlyargs, arguments.kw_defaults, strict=True) if default is None
    }
    names = {one.arg for one in (*plain, *arguments.kwonlyargs)}
    if is_method and plain:
        names.discard(plain[0].arg)
        needed.discard(plain[0].arg)
    return Names(frozenset(names), frozenset(needed), arguments.kwarg is not None)
