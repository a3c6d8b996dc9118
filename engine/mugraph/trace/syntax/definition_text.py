"""The text of a function's definition, to be compiled again where it is compared with code that runs."""

from __future__ import annotations

import ast

from mugraph.trace.syntax.shape_comments import ShapeComments
from mugraph.trace.syntax.source import Source

Definition = ast.FunctionDef | ast.AsyncFunctionDef | ast.Lambda


def imported_names(tree: ast.Module) -> frozenset[str]:
    """What a module binds by importing, functions' own imports left out."""
    names: set[str] = set()
    waiting: list[ast.AST] = [tree]
    while waiting:
        node = waiting.pop()
        if isinstance(node, ast.Import | ast.ImportFrom):
            names.update((alias.asname or alias.name).partition(".")[0] for alias in node.names)
        elif not isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef | ast.ClassDef | ast.Lambda):
            waiting.extend(ast.iter_child_nodes(node))
    return frozenset(names)


def text_of(source: Source, node: Definition) -> str:
    """Of a function its lines, without decorators and lines that are only comments; of a lambda the expression."""
    if isinstance(node, ast.Lambda):
        return source.covered(node)
    first, last = node.lineno - 1, (node.end_lineno or node.lineno) - 1
    lines = list(source.lines[first : last + 1])
    end = source.covered(node).splitlines()[-1]
    if last > first:  # what stands behind it on its last line is not its own
        lines[-1] = end
    else:
        lines[-1] = lines[-1][: lines[-1].index(end) + len(end)]
    comments = ShapeComments(source).whole_lines
    kept = [line for number, line in enumerate(lines, first + 1) if number not in comments]
    return "".join(line.replace("\r\n", "\n").replace("\r", "\n") for line in kept)
