"""Whether the kernels that replace parts of a document still fit it. Runs nothing, imports no kernel."""

from __future__ import annotations

import ast
import logging
import re
from collections.abc import Iterator, Mapping
from pathlib import Path

from mugraph.checking.kept import Kept, last_check
from mugraph.edit.check import edited_spans
from mugraph.edit.names import IS_ALIAS
from mugraph.edit.revert import kernel_modules
from mugraph.edit.source.record import Record, Replaced, text_hash
from mugraph.edit.source.text import EditError, SourceFile
from mugraph.protocol.values import KernelCheck, Position, Range

_log = logging.getLogger("mugraph.worker")


def check_kernels(path: Path, text: str) -> list[KernelCheck]:
    """Raises EditError for a kernel module whose record is damaged."""
    plain = re.sub(r"\r\n|\r", "\n", text)  # records have these line ends; lines and columns stay the same
    file = SourceFile(plain, "\n", "utf-8", bom=False)
    try:
        tree = ast.parse(plain)
        spans = edited_spans(tree, file)
    except (SyntaxError, ValueError, RecursionError) as error:  # while it is being typed
        _log.debug("%s cannot be parsed: %s", path, error)
        tree, spans = None, []
    found: list[KernelCheck] = []
    runs = last_check(path)
    for module, record in kernel_modules(path):
        found += [_checked(file, spans, module, record, region, runs) for region in record.regions]
    if tree is not None:
        found += _missing(tree, file, path)
    return found


def _checked(
    file: SourceFile,
    spans: list[tuple[int, int]],
    module: Path,
    record: Record,
    region: Replaced,
    runs: Mapping[str, Kept],
) -> KernelCheck:
    name = region.names(record)[0]
    at = file.text.find(region.anchor)
    if at < 0:
        message = f"{record.file} does not call {name} of {module.name} any more; revert removes the module."
        return KernelCheck("unused", str(module), message, name, id=region.id)
    start, end = at - region.before, at - region.before + region.length
    original = region.length > 0 and start >= 0 and text_hash(file.text[start:end]) == region.sha256
    if original and file.text.count(region.anchor) == 1:
        message = f"{name} of {module.name} replaces this code."
        said = runs[region.id].words if region.id in runs else ""
        return KernelCheck("fits", str(module), message, name, _range(file, start, end), region.id, said)
    inside = [span for span in spans if span[0] <= at < span[1]]
    start, end = max(inside) if inside else (at, at + len(region.anchor))
    message = (
        f"The code that {name} of {module.name} replaces was edited: the kernel may compute something else. "
        "Revert it and search again."
    )
    return KernelCheck("stale", str(module), message, name, _range(file, start, end), region.id)


def _missing(tree: ast.Module, file: SourceFile, path: Path) -> Iterator[KernelCheck]:
    """Imports of kernel modules that are not there."""
    for node in ast.walk(tree):
        if not isinstance(node, ast.Import | ast.ImportFrom):
            continue
        for alias in node.names:
            name = alias.name.rpartition(".")[2]
            if alias.asname is None or not IS_ALIAS.fullmatch(alias.asname) or "_mugraph" not in name:
                continue
            module = path.with_name(f"{name}.py")
            if not module.exists():
                start = file.offset_utf8(node.lineno, node.col_offset)
                end = file.offset_utf8(node.end_lineno or node.lineno, node.end_col_offset or 0)
                message = f"{module.name} is not there: {path.name} cannot be imported. Restore it, or undo the edit."
                yield KernelCheck("missing", str(module), message, range=_range(file, start, end))


def _range(file: SourceFile, start: int, end: int) -> Range:
    return Range(_position(file, start), _position(file, end))


def _position(file: SourceFile, offset: int) -> Position:
    line = file.line_of(offset)
    before = file.text[file.starts[line] : offset]
    return Position(line, len(before.encode("utf-16-le")) // 2)


__all__ = ["EditError", "check_kernels"]
