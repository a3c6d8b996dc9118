"""Whether recorded arguments are arguments of the function as it is written now."""

from __future__ import annotations

import ast
from collections.abc import Iterator, Mapping
from dataclasses import dataclass

_Function = ast.FunctionDef | ast.AsyncFunctionDef


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
        return dict(_functions(ast.parse(text).body, "", False))
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


def _functions(body: list[ast.stmt], prefix: str, in_class: bool) -> Iterator[tuple[str, Names]]:
    for node in body:
        if isinstance(node, _Function):
            yield prefix + node.name, _names(node, in_class)
        elif isinstance(node, ast.ClassDef):
            yield from _functions(node.body, f"{prefix}{node.name}.", True)
        else:
            for field in ("body", "orelse", "finalbody"):
                yield from _functions(getattr(node, field, []), prefix, in_class)
            for handler in getattr(node, "handlers", []):
                yield from _functions(handler.body, prefix, in_class)


def _names(function: _Function, is_method: bool) -> Names:
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
