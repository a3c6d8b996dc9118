"""The comparison of a whole file with its edited copy, in a process that is up before it is needed: importing PyTorch
takes seconds, in which the file is searched."""

from __future__ import annotations

import ast
import json
import os
import shutil
import subprocess
import sys
import tempfile
from collections.abc import Sequence
from pathlib import Path
from types import TracebackType
from typing import cast

from mugraph.commands.bench import Json
from mugraph.edit.apply import apply_files
from mugraph.edit.source.text import EditError
from mugraph.events import FileResult
from mugraph.ir.kernel import Rejected
from mugraph.pipeline import improved

LEAST_S = 60.0
"""That the comparison of a whole file gets, whatever is left of the file's time."""
_COMPILING = 0.6
"""Of the comparison's time, after which no other peer is compiled."""
TOOK_TOO_LONG: Json = {"right": None, "why": "the comparison took too long"}


def is_kernelbench(path: Path) -> bool:
    try:
        names = {getattr(node, "name", "") for node in ast.parse(path.read_bytes()).body}
    except (OSError, SyntaxError, ValueError, RecursionError):
        return False
    return {"Model", "get_inputs"} <= names


class WholeFiles:
    """Compares one file after the other, each in a process of its own."""

    def __init__(self) -> None:
        self._next: subprocess.Popen[str] | None = None

    def __enter__(self) -> WholeFiles:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        if self._next is not None:
            _end(self._next)

    def begin(self) -> None:
        """The next comparison's process, where none waits."""
        if self._next is None or self._next.poll() is not None:
            self._next = subprocess.Popen(
                [sys.executable, "-m", "mugraph.checking.whole"],
                stdin=subprocess.PIPE,
                stdout=subprocess.PIPE,
                stderr=subprocess.PIPE,
                text=True,
            )

    def compare(
        self, path: Path, results: Sequence[FileResult], left_s: float, peers: Sequence[str] = ()
    ) -> Json | None:
        """As KernelBench compares the file with its edited copy; None for what `can_compare` says no of. results: of
        the file, and of others of its folder that its run finds regions in. peers: what a call of the whole is timed
        beside"""
        if not can_compare(path, results):
            return None
        with tempfile.TemporaryDirectory(prefix="mugraph-bench-", ignore_cleanup_errors=True) as folder:
            copy = Path(folder, path.name)
            shutil.copyfile(path, copy)
            for result in results:
                plans, sources, speeds = improved(result.regions)
                file, here = Path(result.path).resolve(), path.resolve().parent
                if not plans:
                    continue
                if not file.is_relative_to(here):
                    return {"right": None, "why": f"{file} has kernels and is not in the folder of {path.name}"}
                edited = Path(folder, file.relative_to(here))
                if edited != copy:
                    edited.parent.mkdir(parents=True, exist_ok=True)
                    shutil.copyfile(file, edited)
                try:
                    apply_files(edited, plans, sources, target=result.device.target, speeds=speeds)
                except (EditError, Rejected) as error:
                    return {"right": False, "why": str(error)}
            return self._asked([str(path.resolve()), str(copy)], peers, max(left_s, LEAST_S))

    def _asked(self, files: list[str], peers: Sequence[str], timeout_s: float) -> Json:
        self.begin()
        process, self._next = self._next, None
        assert process is not None
        in_time = True
        try:
            asked = json.dumps([files, [*peers], timeout_s * _COMPILING])
            out, errors = process.communicate(asked, timeout_s)
        except subprocess.TimeoutExpired:
            in_time = False
            out, errors = _end(process)
        lines = out.splitlines()
        if not lines and not in_time:
            return TOOK_TOO_LONG
        if not lines:
            said = [line for line in errors.splitlines() if line.strip()]
            why = said[-1] if said else f"status {process.returncode}"
            return {"right": None, "why": f"the comparison ended: {why}"}
        found = cast("dict[str, object]", json.loads(lines[-1]))
        if found["right"] and not found["taken"]:
            return {**found, "right": None, "why": "no call was taken by a kernel"}
        return found


def can_compare(path: Path, results: Sequence[FileResult]) -> bool:
    """Is it a file of KernelBench's convention with kernels, which can run here?"""
    found = any(improved(result.regions)[0] for result in results)
    runs_here = results[0].device.kind == "gpu" or os.environ.get("TRITON_INTERPRET") == "1"
    return found and runs_here and is_kernelbench(path)


def _end(process: subprocess.Popen[str]) -> tuple[str, str]:
    """What it has said until then."""
    process.kill()
    try:
        return process.communicate()
    except OSError:
        return "", ""
