"""Runs the user's program with the watcher in it: how many calls each region's kernel took, and why not all."""

from __future__ import annotations

import ast
import os
import tempfile
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path

from mugraph.edit.source.record import Record, read_record
from mugraph.edit.source.text import EditError, SourceFile
from mugraph.recording.inside.mugraph_watcher.counts import NO_ROOM, Key, read
from mugraph.recording.inside.mugraph_watcher.install import FOLDER
from mugraph.recording.launch import environment, run_command


@dataclass(frozen=True)
class RegionRun:
    """One region of an edited file, and what became of its calls.

    name, id: of the region in its kernel module (`NAME_fits`)
    function: of the user's, that the region is in
    refused:  why calls were not taken and how many, the most frequent reason first
    """

    file: Path
    name: str
    id: str
    function: str
    taken: int
    refused: tuple[tuple[str, int], ...] = ()

    @property
    def calls(self) -> int:
        return self.taken + sum(calls for _, calls in self.refused)


@dataclass(frozen=True)
class ProgramRun:
    """status: of the program, as a shell has it. uncounted: calls that are in none of the regions, for want of room."""

    status: int
    regions: tuple[RegionRun, ...]
    uncounted: int = 0


def run_watched(command: Sequence[str], stdout: int | None = None) -> ProgramRun:
    """stdout: a file descriptor that the program's standard output goes to. Raises recording.launch.CannotRun."""
    with tempfile.TemporaryDirectory(prefix="mugraph-check-", ignore_cleanup_errors=True) as folder:
        around = {**os.environ, **environment(FOLDER, folder)}
        status = run_command(command, around, stdout)
        counts = read(Path(folder))
    uncounted = counts.pop(NO_ROOM, 0)
    return ProgramRun(status, tuple(_regions(counts)), uncounted)


def _regions(counts: Mapping[Key, int]) -> list[RegionRun]:
    found: list[RegionRun] = []
    for module, name in sorted({(module, name) for module, name, _ in counts}):
        reasons = {why: n for (m, r, why), n in counts.items() if (m, r) == (module, name)}
        refused = sorted(((why, n) for why, n in reasons.items() if why is not None and n), key=lambda one: -one[1])
        record = _record(Path(module))
        file, function, id = Path(module), name, ""
        if record is not None:
            file = Path(module).with_name(record.file)
            function = function_of(file, f"{record.alias}.{name}_fits") or name
            id = next((one.id for one in record.regions if one.anchor == f"{record.alias}.{name}_fits("), "")
        found.append(RegionRun(file, name, id, function, reasons.get(None, 0), tuple(refused)))
    return found


def _record(module: Path) -> Record | None:
    try:
        return read_record(module)
    except EditError:
        return None


def function_of(file: Path, asked: str) -> str | None:
    """The qualified name of the function that calls `asked` ("mugraph_kernels.norm_fits")."""
    try:
        tree = ast.parse(SourceFile.decode(file.read_bytes()).text)
    except (OSError, SyntaxError, ValueError, EditError):
        return None
    found: list[str] = []

    def visit(node: ast.AST, name: str) -> None:
        for child in ast.iter_child_nodes(node):
            if isinstance(child, ast.Call) and ast.unparse(child.func) == asked:
                found.append(name)
            inner = name
            if isinstance(child, ast.FunctionDef | ast.AsyncFunctionDef | ast.ClassDef):
                inner = f"{name}.{child.name}" if name else child.name
            visit(child, inner)

    visit(tree, "")
    return found[0] if found else None
