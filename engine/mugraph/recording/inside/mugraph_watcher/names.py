"""What a person calls the things that a guard's local names stand for: `self.norm` for `modules["norm"]`."""

from __future__ import annotations

import ast
from collections.abc import Mapping, Sequence
from typing import Any

_KEPT = ("._modules", "._parameters", "._buffers", ".__dict__")


class Names:
    """Of one function that is looked at."""

    def __init__(self) -> None:
        self._words: dict[str, str] = {}
        self._items: dict[str, tuple[str, ...]] = {}
        self._bound: dict[str, ast.expr] = {}

    def say(self, name: str, words: str) -> None:
        self._words[name] = words

    def say_items(self, name: str, words: Sequence[str]) -> None:
        """Of a tuple's elements."""
        self._items[name] = tuple(words)

    def bind(self, name: str, value: ast.expr, values: Mapping[str, Any]) -> None:
        """The name was assigned."""
        self._bound[name] = value
        self._words[name] = self.said(value, values)

    def items_of(self, node: ast.expr) -> list[str]:
        match node:
            case ast.Name(name):
                return list(self._items.get(name, ()))
            case ast.Tuple(elements) | ast.List(elements):
                return [self.said(element, {}) for element in elements]
            case _:
                return []

    def behind(self, node: ast.expr) -> ast.expr:
        """The expression that a local name was assigned from."""
        for _ in range(4):
            if not isinstance(node, ast.Name) or node.id not in self._bound:
                break
            node = self._bound[node.id]
        return node

    def said(self, node: ast.expr, values: Mapping[str, Any]) -> str:
        return ast.unparse(_Said(self._words, self._items, values).visit(_copied(node)))


class _Said(ast.NodeTransformer):
    """Puts words in place of names, and reads modules' parts as attributes."""

    def __init__(
        self, words: Mapping[str, str], items: Mapping[str, tuple[str, ...]], values: Mapping[str, Any]
    ) -> None:
        self._words = words
        self._items = items
        self._values = values

    def visit_Name(self, node: ast.Name) -> ast.AST:
        return ast.Name(self._words.get(node.id, node.id), node.ctx)

    def visit_Subscript(self, node: ast.Subscript) -> ast.AST:
        match node:
            case ast.Subscript(ast.Name(several), ast.Constant(int(at))) if at < len(self._items.get(several, ())):
                return ast.Name(self._items[several][at], node.ctx)
            case ast.Subscript(ast.Name(space), ast.Constant(str(key))) if _is_namespace(self._values.get(space)):
                return ast.Name(key, node.ctx)
            case ast.Subscript(owner, ast.Constant(str(key))):
                text = ast.unparse(self.visit(owner))
                kept = next((one for one in _KEPT if text.endswith(one)), None)
                if kept is not None:
                    return ast.Name(f"{text.removesuffix(kept)}.{key}", node.ctx)
                if text.endswith(".__globals__"):
                    return ast.Name(key, node.ctx)
                return ast.Name(f"{text}[{key!r}]", node.ctx)
            case _:
                return self.generic_visit(node)


def _is_namespace(value: object) -> bool:
    return isinstance(value, dict) and "__builtins__" in value


def _copied(node: ast.expr) -> ast.expr:
    return ast.parse(ast.unparse(node), mode="eval").body
