"""Runs the user's program with the watcher in it: how many calls each region's kernel took, and why not all."""

from __future__ import annotations

import ast
import os
import tempfile
from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import Path

from mugraph.edit.source.record import Record, read_record
from mugraph.edit.source.text import EditError, SourceFile
from mugraph.recording.inside.mugraph_watcher.counts import NO_ROOM, Key, Sizes, read
from mugraph.recording.inside.mugraph_watcher.install import FOLDER
from mugraph.recording.launch import environment, run_command


@dataclass(frozen=True)
class RegionRun:
    """One replaced part of an edited file, and what became of its calls.

    name, id: of its region in its kernel module (`NAME_fits`), of several regions of the one that is asked first
    function: of the user's, that the region is in
    refused:  why calls were not taken and how many, the most frequent reason first
    other_sizes: how many of these were refused only because tensors have other sizes than the kernel's
    sizes:    of these, what had which: (`x.shape[1]`, (8, 11))
    """

    file: Path
    name: str
    id: str
    function: str
    taken: int
    refused: tuple[tuple[str, int], ...] = ()
    other_sizes: int = 0
    sizes: tuple[tuple[str, tuple[int, ...]], ...] = ()

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
    found: dict[tuple[str, str], RegionRun] = {}
    modules: dict[str, Record | None] = {}
    for module, name in sorted({(module, name) for module, name, _, _ in counts}):
        of_region = {(why, sizes): n for (m, r, why, sizes), n in counts.items() if (m, r) == (module, name)}
        reasons: Counter[str | None] = Counter()
        for (why, _), calls in of_region.items():
            reasons[why] += calls
        of_sizes: Counter[Sizes] = Counter()
        for (_, sizes), calls in of_region.items():
            if sizes is not None and calls:
                of_sizes[sizes] += calls
        refused = sorted(((why, n) for why, n in reasons.items() if why is not None and n), key=lambda one: -one[1])
        record = modules.setdefault(module, _record(Path(module)))
        file, function, id = Path(module), name, ""
        if record is not None:
            file = Path(module).with_name(record.file)
            function = function_of(file, f"{record.alias}.{name}_fits") or name
            id = next((one.id for one in record.regions if one.anchor == f"{record.alias}.{name}_fits("), "")
        taken, other = reasons.get(None, 0), sum(of_sizes.values())
        run = RegionRun(file, name, id, function, taken, tuple(refused), other, _by_what(of_sizes))
        found[module, name] = run
    for module, record in modules.items():
        if record is None:
            continue
        for one in record.regions:
            names = [(module, name) for name in one.names(record)]
            if len(names) > 1 and names[0] in found:
                found[names[0]] = _together([found.pop(name) for name in names if name in found])
    return [found[key] for key in sorted(found)]


def _together(runs: Sequence[RegionRun]) -> RegionRun:
    """Regions of the same code, in the order in which they are asked: the last one refuses what none of them takes."""
    last = runs[-1]
    taken = sum(one.taken for one in runs)
    return replace(runs[0], taken=taken, refused=last.refused, other_sizes=last.other_sizes, sizes=last.sizes)


def _by_what(of_sizes: Iterable[Sizes]) -> tuple[tuple[str, tuple[int, ...]], ...]:
    found: dict[str, set[int]] = {}
    for sizes in of_sizes:
        for what, size in sizes:
            found.setdefault(what, set()).add(size)
    return tuple((what, tuple(sorted(several))) for what, several in found.items())


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
