"""Attributes that several conditions read (`self.attention`) are read once: reading one from a module is slow, because
`torch.nn.Module.__getattr__` is Python code."""

from __future__ import annotations

import ast
import re
from collections.abc import Mapping, Sequence
from typing import TypeGuard

from mugraph.edit.module.expressions import Expression, expression_of, place, substituted
from mugraph.edit.names import parameter_name
from mugraph.ir.names import Scope
from mugraph.ir.ran import Ran

_MEMBER = re.compile(r"\._(?:modules|parameters|buffers)\['(\w+)'\]")


def by_members(expression: str, members: Mapping[str, Mapping[str, str]]) -> str:
    """The expression with attributes of modules read directly from the dictionaries that hold them (`_parameters`,
    `_modules`). For a module whose class `_is` the analysed one, this gives what reading the attribute gives.

    members: of objects: their expression -> attribute -> the dictionary that holds it
    """
    found = expression_of(expression)
    read = [node for node in ast.walk(found.tree) if isinstance(node, ast.Attribute)]
    kept = [(node, members.get(found.of(node.value), {}).get(node.attr)) for node in read]
    return found.edited(
        (place(node.value)[1], place(node)[1], f".{held}[{node.attr!r}]") for node, held in kept if held is not None
    )


def members_of(ran: Mapping[str, Ran], guards: Sequence[str]) -> dict[str, Mapping[str, str]]:
    """Of the modules that guards know to be of an analysed class: what `by_members` takes. Once for all expressions: a
    large model has a thousand of each."""
    kinds: dict[str, str] = {}
    for guard in guards:
        kind = _kind(guard)
        if kind is not None:
            kinds[kind[0]] = kind[1]
    return {path: ran[what].parts for path, what in kinds.items() if what in ran}


def _kind(guard: str) -> tuple[str, str] | None:
    """The module and the class that a guard compares, if it is such a guard."""
    found = expression_of(guard)
    match found.tree:
        case ast.Call(ast.Name("_is"), [module, ast.Constant(str(what))]):
            return found.of(module), what
        case _:
            return None


def module_classes(text: str) -> frozenset[str]:
    """Qualified names of a file's classes that say they are torch.nn.Module's, or are made of such."""
    found: set[str] = set()

    def visit(body: Sequence[ast.stmt], around: str) -> None:
        for node in body:
            if isinstance(node, ast.ClassDef):
                bases = {ast.unparse(base) for base in node.bases}
                if bases & {"nn.Module", "torch.nn.Module", *found}:
                    found.add(around + node.name)
                visit(node.body, f"{around}{node.name}.")

    try:
        visit(ast.parse(text).body, "")
    except (SyntaxError, ValueError, RecursionError):
        return frozenset()
    return frozenset(found)


def hoisted(expressions: Sequence[str], scope: Scope) -> tuple[list[str], list[str]]:
    """Assignments for what is read more than once, in an order in which they can run, and the expressions that use
    them.

    scope: hands out the names
    """
    uses: dict[str, set[str]] = {}
    for number, expression in enumerate(expressions):
        found = expression_of(expression)
        _note(found, found.tree, f"expression {number}", uses)
    shared = [path for path, users in uses.items() if len(users) > 1]
    names = {path: scope.unique(name_for(path)) for path in sorted(shared, key=len)}
    bindings = [f"{name} = {substituted(path, names, whole=False)}" for path, name in names.items()]
    return bindings, [substituted(expression, names) for expression in expressions]


def name_for(path: str) -> str:
    """`attention_q_proj` of self.attention.q_proj; `rotate` of type(self).forward.__globals__["rotate"]."""
    path = _MEMBER.sub(r".\1", path)
    if path.endswith(".__dict__"):
        return f"{parameter_name(path.removesuffix('.__dict__'))}_own"
    node = expression_of(path).tree
    if isinstance(node, ast.Subscript) and isinstance(node.slice, ast.Constant) and isinstance(node.slice.value, str):
        return node.slice.value
    return parameter_name(path)


def _note(found: Expression, node: ast.AST, user: str, uses: dict[str, set[str]]) -> None:
    """Notes for each path what reads it: a longer path, or the expression itself."""
    if _is_path(node):
        text = found.of(node)
        uses.setdefault(text, set()).add(user)
        user = text
    for child in ast.iter_child_nodes(node):
        _note(found, child, user, uses)


def _is_path(node: ast.AST) -> TypeGuard[ast.expr]:
    """`a.b`, `a[0]`, `a.b["c"]`, `type(a.b).c` and the like."""
    if isinstance(node, ast.Attribute):
        return _is_root(node.value) or _is_path(node.value)
    if isinstance(node, ast.Subscript):
        constant = isinstance(node.slice, ast.Constant)
        return constant and (_is_root(node.value) or _is_path(node.value))
    return False


def _is_root(node: ast.AST) -> bool:
    match node:
        case ast.Name():
            return True
        case ast.Call(ast.Name("type"), [argument], []):
            return _is_root(argument) or _is_path(argument)
        case _:
            return False
