"""The programs with their kernels applied, each searched once in a run of the tests."""

from __future__ import annotations

import json
import shutil
from collections.abc import Callable, Iterator
from pathlib import Path
from subprocess import DEVNULL, PIPE
from typing import Any

import pytest
from mugraph.edit.apply import apply_files
from mugraph.tune.device import detect, resolve

from tests.changes.case import PROGRAMS, Change, Program
from tests.samples.applied import found
from tests.support.clock import slow_clock
from tests.support.forks import Fork, ForkServer, forked
from tests.support.shared import made_once, shared_folder

TARGET = "h100"
BUDGET_S = 0.3

CHILD = Path(__file__).parent / "run_child.py"

Applied = Callable[[Program], Path]
CameOf = Callable[[Change], dict[str, Any]]


@pytest.fixture(scope="session")
def applied(tmp_path_factory: pytest.TempPathFactory, tracing: ForkServer, interpreting: ForkServer) -> Applied:
    """A program -> a folder with its files in `original`, and with their kernels applied in `edited`."""
    shared = shared_folder(tmp_path_factory, "changes")

    def folder_of(program: Program) -> Path:
        folder = shared / program.file

        def make() -> None:
            for side in ("original", "edited"):
                shutil.copytree(PROGRAMS / "site-packages", folder / side / "site-packages", dirs_exist_ok=True)
                for path in PROGRAMS.glob(f"{program.file}*.py"):
                    shutil.copyfile(path, folder / side / path.name)
            path = folder / "edited" / f"{program.file}.py"
            with slow_clock(), forked(tracing, interpreting):
                result = found(path, TARGET, BUDGET_S)
            plans = [region.plan for region in result.regions if region.plan is not None]
            assert len(plans) == len(result.regions), [region.reason for region in result.regions]
            sources = {name: source for region in result.regions for name, source in region.sources.items()}
            apply_files(path, plans, sources, target=resolve(TARGET, detect()))

        made_once(shared / f"{program.file}.pickle", make)
        return folder

    return folder_of


@pytest.fixture(scope="session")
def came_of(applied: Applied, interpreting: ForkServer) -> Iterator[CameOf]:
    """A change -> what came of it, made before its program has run and after: see run_child.py."""
    child = Fork(interpreting, str(CHILD), [], stdin=PIPE, stdout=PIPE, stderr=DEVNULL)
    assert child.stdin is not None
    assert child.stdout is not None
    asking, answering = child.stdin, child.stdout

    def asked(change: Change) -> dict[str, Any]:
        asking.write(json.dumps([change.name, str(applied(change.program))]).encode() + b"\n")
        line = answering.readline()
        assert line, "what makes the changes has ended"
        return json.loads(line)

    yield asked
    asking.close()
    assert child.wait(60) == 0
