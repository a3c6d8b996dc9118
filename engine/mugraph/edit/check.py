"""Judging an edit before it is written, and finding the edits a file has already."""

from __future__ import annotations

import ast

from mugraph.edit.names import IS_ALIAS
from mugraph.edit.source.record import Record
from mugraph.edit.source.text import EditError, SourceFile
from mugraph.edit.undo import undo


def _tests_a_kernel(test: ast.expr, alias: str | None) -> bool:
    """Whether a condition asks a kernel module's `<name>_fits` (of the module called `alias`, or of any)."""
    return any(
        isinstance(node, ast.Call)
        and isinstance(node.func, ast.Attribute)
        and node.func.attr.endswith("_fits")
        and isinstance(node.func.value, ast.Name)
        and (node.func.value.id == alias if alias else bool(IS_ALIAS.fullmatch(node.func.value.id)))
        for node in ast.walk(test)
    )


def edited_spans(tree: ast.Module, file: SourceFile) -> list[tuple[int, int]]:
    """[start, end) of every part of the file that an earlier edit replaced."""
    return [
        (
            file.offset_utf8(node.lineno, node.col_offset),
            file.offset_utf8(node.end_lineno or node.lineno, node.end_col_offset or 0),
        )
        for node in ast.walk(tree)
        if isinstance(node, (ast.If, ast.IfExp)) and _tests_a_kernel(node.test, None)
    ]


class _Original(ast.NodeTransformer):
    """The program as it was before the edit: no kernel's condition holds, and its import is gone."""

    def __init__(self, alias: str) -> None:
        self.alias = alias

    def visit_If(self, node: ast.If) -> ast.AST | list[ast.stmt]:
        self.generic_visit(node)
        return node.orelse if _tests_a_kernel(node.test, self.alias) else node

    def visit_IfExp(self, node: ast.IfExp) -> ast.AST:
        self.generic_visit(node)
        return node.orelse if _tests_a_kernel(node.test, self.alias) else node

    def _import(self, node: ast.Import | ast.ImportFrom) -> ast.AST | None:
        return None if [name.asname for name in node.names] == [self.alias] else node

    visit_Import = _import
    visit_ImportFrom = _import

    def visit_Try(self, node: ast.Try) -> ast.AST | None:
        self.generic_visit(node)
        return node if node.body else None


def check_edit(before: SourceFile, after: SourceFile, record: Record) -> None:
    """Raises EditError unless three things hold: the edited file is Python, it is the original program wherever no
    kernel fits, and the edit can be undone to the byte."""
    try:
        kept = _Original(record.alias).visit(ast.parse(after.text))
    except SyntaxError as error:
        raise EditError(f"{record.file} would be no valid Python after the edit ({error}).") from None
    if ast.dump(kept) != ast.dump(ast.parse(before.text)):
        raise EditError(f"The edit would change what {record.file} does without a GPU, so it was not made.")
    if undo(after, record).encode() != before.encode():
        raise EditError(f"The edit of {record.file} could not be undone, so it was not made.")
