"""What distinguishes a script's namespace from a module's, set right where a script runs as a module."""

from __future__ import annotations

import ast


def as_script(tree: ast.Module) -> None:
    """`__spec__` and `__package__` are None in a script; multiprocessing decides by them how a child finds it."""
    at = 0
    for at, node in enumerate([*tree.body, ast.Pass()]):
        is_docstring = at == 0 and ast.get_docstring(tree, clean=False) is not None
        is_future = isinstance(node, ast.ImportFrom) and node.module == "__future__"
        if not is_docstring and not is_future:
            break
    [statement] = ast.parse("__spec__ = __package__ = None").body
    for node in ast.walk(statement):
        if isinstance(node, ast.stmt | ast.expr):
            node.lineno = node.end_lineno = tree.body[0].lineno if tree.body else 1
            node.col_offset = node.end_col_offset = 0
    tree.body.insert(at, statement)
