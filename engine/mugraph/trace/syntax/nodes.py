"""Syntax trees with numbered nodes: of the functions in them, which nodes are their own."""

from __future__ import annotations

import ast
from collections.abc import Iterator
from dataclasses import dataclass, field

Function = ast.FunctionDef | ast.AsyncFunctionDef


@dataclass(frozen=True)
class Numbering:
    """The nodes of one file in preorder. A node's subtree is the numbers from its own to `last` of it, inclusive."""

    base: int
    nodes: tuple[ast.AST, ...]
    last: tuple[int, ...]
    owner: tuple[str, ...] = field(repr=False)  # qualified name of the function or class around (or at) the node


def number_nodes(tree: ast.Module, base: int) -> Numbering:
    """Numbers the nodes, writing the number into each as `_mugraph`. Equal trees get equal numbers."""
    nodes: list[ast.AST] = []
    last: list[int] = []
    owner: list[str] = []

    def visit(node: ast.AST, name: str) -> None:
        index = len(nodes)
        if isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef | ast.ClassDef):
            name = f"{name}.{node.name}" if name else node.name
        node._mugraph = base + index  # type: ignore[attr-defined]
        nodes.append(node)
        last.append(0)
        owner.append(name)
        for child in ast.iter_child_nodes(node):
            visit(child, name)
        last[index] = base + len(nodes) - 1

    visit(tree, "")
    return Numbering(base, tuple(nodes), tuple(last), tuple(owner))


def number_of(node: ast.AST) -> int:
    return node._mugraph  # type: ignore[attr-defined,no-any-return]


def own_nodes(function: Function) -> Iterator[ast.AST]:
    """The nodes of a function's body, those of functions and classes defined in it left out."""
    stack: list[ast.AST] = list(reversed(function.body))
    while stack:
        node = stack.pop()
        yield node
        if not isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef | ast.ClassDef | ast.Lambda):
            stack.extend(ast.iter_child_nodes(node))


def is_plain(function: Function) -> bool:
    """Neither generator nor coroutine: a call of it runs its body once, at once."""
    if isinstance(function, ast.AsyncFunctionDef):
        return False
    return not any(isinstance(node, ast.Yield | ast.YieldFrom | ast.Await) for node in own_nodes(function))
