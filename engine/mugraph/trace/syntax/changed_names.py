"""Names that functions of a file change, as its text says it."""

from __future__ import annotations

import ast
from collections.abc import Iterable, Iterator
from dataclasses import dataclass

from mugraph.trace.pytorch.containers import CHANGE_WHAT_IS_IN


@dataclass(frozen=True)
class ChangedNames:
    """rebound: names of modules that functions bind anew; filled: last names of containers whose keys or elements
    change"""

    rebound: frozenset[str]
    filled: frozenset[str]


def changed_names(trees: Iterable[ast.AST]) -> ChangedNames:
    rebound, filled = set[str](), set[str]()
    for node in (node for tree in trees for node in ast.walk(tree)):
        match node:
            case ast.Global(names=names):
                rebound |= {*names}
            case ast.Subscript(value=base, ctx=ast.Store() | ast.Del()):
                filled |= {*last_name(base)}
            case ast.Call(func=ast.Attribute(value=base, attr=method)) if method in CHANGE_WHAT_IS_IN:
                filled |= {*last_name(base)}
            case _:
                pass
    return ChangedNames(frozenset(rebound), frozenset(filled))


def last_name(node: ast.expr) -> Iterator[str]:
    """Of `a.b.table`, `table`; nothing of what has no name."""
    match node:
        case ast.Name(id=name) | ast.Attribute(attr=name):
            yield name
        case _:
            return
