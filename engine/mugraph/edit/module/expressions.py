"""Expressions that conditions are made of: parsed once, and rewritten by replacing parts of their text.

A large model has thousands of conditions, and each is read and rewritten several times on its way into the kernel
module. To write a tree out again takes ten times as long as to cut and join its text.
"""

from __future__ import annotations

import ast
import builtins
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass
from functools import cached_property, lru_cache

Edit = tuple[int, int, str]
"""[start, end) of an expression's text in UTF-8, and what replaces it."""


@dataclass(frozen=True)
class Expression:
    """text: as `ast.unparse` writes it, in UTF-8; tree: of it, which is not to be changed"""

    text: bytes
    tree: ast.expr

    def of(self, node: ast.expr) -> str:
        """The text of one of its nodes."""
        return self.text[node.col_offset : node.end_col_offset].decode()

    @cached_property
    def names(self) -> list[ast.Name]:
        """The names that it reads, in order. Built-in functions that it calls are not among them: conditions mean the
        built-in ones."""
        nodes = [*ast.walk(self.tree)]
        called = {id(node.func) for node in nodes if isinstance(node, ast.Call)}
        named = (node for node in nodes if isinstance(node, ast.Name))
        read = [node for node in named if not (id(node) in called and hasattr(builtins, node.id))]
        return sorted(read, key=lambda node: node.col_offset)

    def edited(self, edits: Iterable[Edit]) -> str:
        """Its text with parts replaced that do not overlap."""
        pieces: list[bytes] = []
        done = 0
        for start, end, new in sorted(edits):
            pieces += [self.text[done:start], new.encode()]
            done = end
        return b"".join([*pieces, self.text[done:]]).decode()


@lru_cache(1 << 14)
def expression_of(text: str) -> Expression:
    """Raises SyntaxError where the text is no expression on one line."""
    written = ast.unparse(ast.parse(text, mode="eval"))
    tree = ast.parse(written, mode="eval").body
    if tree.end_lineno != 1:
        raise SyntaxError(f"{written!r} is longer than a line")
    return Expression(written.encode(), tree)


def place(node: ast.expr) -> tuple[int, int]:
    """[start, end) in the text of its expression."""
    return node.col_offset, node.end_col_offset or node.col_offset


def renamed(text: str, names: Mapping[str, str]) -> str:
    """The expression with another expression for each name that it reads and that `names` has."""
    found = expression_of(text)
    return found.edited(
        (*place(node), names[node.id]) for node in found.names if names.get(node.id, node.id) != node.id
    )


def substituted(text: str, names: Mapping[str, str], *, whole: bool = True) -> str:
    """The expression with each part that is a key of `names` replaced by its name; of parts in one another the outer
    one. whole: also if the expression itself is a key"""
    found = expression_of(text)

    def edits(node: ast.AST) -> Iterator[Edit]:
        if isinstance(node, ast.expr) and (whole or node is not found.tree) and (name := names.get(found.of(node))):
            yield (*place(node), name)
            return
        for child in ast.iter_child_nodes(node):
            yield from edits(child)

    return found.edited(edits(found.tree)) if names else found.edited(())
