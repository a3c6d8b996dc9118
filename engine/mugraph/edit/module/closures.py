"""Conditions on what closures hold, as functions of their own."""

from __future__ import annotations

import ast
from collections.abc import Sequence

from mugraph.edit.module.straight import straight


class _Closures(ast.NodeTransformer):
    """Moves tests of closures (`f.__closure__[0].cell_contents == 2`) into functions of their own: torch.compile cannot
    look into closures."""

    def __init__(self) -> None:
        self.function: ast.expr | None = None

    def visit_Attribute(self, node: ast.Attribute) -> ast.AST:
        if node.attr == "__closure__" and "__closure__" not in ast.unparse(node.value):
            self.function = node.value
            return ast.Attribute(ast.Name("f", ast.Load()), node.attr, ast.Load())
        return self.generic_visit(node)


def apart(region: str, guards: Sequence[str]) -> tuple[list[str], list[str]]:
    """The guards, with a call for each test of a closure; and the lines that define the functions called."""
    kept: list[str] = []
    lines: list[str] = []
    for guard in guards:
        if "__closure__" not in guard or guard.startswith("_runs("):  # what runs is compared with all else that does
            kept.append(guard)
            continue
        closures = _Closures()
        tree = closures.visit(ast.parse(guard, mode="eval"))
        if closures.function is None:
            kept.append(guard)
            continue
        name = f"_{region}_inside_{len(kept)}"
        lines += [f"def {name}(f):", f"    return {' and '.join(straight(ast.unparse(tree), {}))}", "", ""]
        kept.append(f"_inside({ast.unparse(closures.function)}, {name})")
    return kept, lines
