"""No error vanishes: whoever catches everything raises it again, logs it, or says what it was."""

from __future__ import annotations

import ast
from collections.abc import Iterator
from pathlib import Path

import mugraph
import mugraph_server

LOGGED = {"debug", "info", "warning", "error", "exception"}


def swallowing(source: str) -> Iterator[int]:
    """Lines of clauses that catch everything and leave no trace of it."""
    for node in ast.walk(ast.parse(source)):
        if isinstance(node, ast.ExceptHandler) and _catches_everything(node) and not _tells(node):
            yield node.lineno
        if isinstance(node, ast.Call) and ast.unparse(node.func).endswith("suppress") and any(map(_is_any, node.args)):
            yield node.lineno


def _catches_everything(handler: ast.ExceptHandler) -> bool:
    kinds = handler.type.elts if isinstance(handler.type, ast.Tuple) else [handler.type]
    return any(kind is None or _is_any(kind) for kind in kinds)


def _is_any(kind: ast.expr) -> bool:
    return isinstance(kind, ast.Name) and kind.id in ("Exception", "BaseException")


def _tells(handler: ast.ExceptHandler) -> bool:
    for node in (inner for line in handler.body for inner in ast.walk(line)):
        if isinstance(node, ast.Raise):
            return True
        if isinstance(node, ast.Name) and node.id == handler.name:
            return True
        if isinstance(node, ast.Call) and isinstance(node.func, ast.Attribute) and node.func.attr in LOGGED:
            return True
    return False


def test_no_error_vanishes() -> None:
    found: list[str] = []
    for package in (mugraph, mugraph_server):
        assert package.__file__ is not None
        folder = Path(package.__file__).parent
        files = sorted(folder.rglob("*.py"))
        assert files
        found += [f"{path.relative_to(folder)}:{line}" for path in files for line in swallowing(path.read_text())]
    assert found == []


def test_what_is_found() -> None:
    bad = ("pass", "x = 1", "tell('it')")
    for body in bad:
        for kind in ("", " Exception", " BaseException", " (ValueError, Exception)", " Exception as error"):
            assert list(swallowing(f"try:\n    f()\nexcept{kind}:\n    {body}\n")) == [3]
    assert list(swallowing("with contextlib.suppress(Exception):\n    f()\n")) == [1]
    for body in ("raise", "log.warning('it', exc_info=True)"):
        assert not list(swallowing(f"try:\n    f()\nexcept Exception:\n    {body}\n"))
    assert not list(swallowing("try:\n    f()\nexcept Exception as error:\n    tell(error)\n"))
    assert not list(swallowing("try:\n    f()\nexcept ValueError:\n    pass\n")), "which says what it expects"
