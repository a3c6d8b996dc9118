"""The programs with their kernels applied, each searched once in a run of the tests."""

from __future__ import annotations

import shutil
from collections.abc import Callable
from pathlib import Path

import pytest
from mugraph.codegen.edit import apply_files
from mugraph.tune.device import detect, resolve

from tests.changes.case import PROGRAMS, Program
from tests.samples.applied import found
from tests.support.clock import slow_clock
from tests.support.forks import ForkServer, forked
from tests.support.shared import made_once, shared_folder

TARGET = "h100"
BUDGET_S = 0.3

Applied = Callable[[Program], Path]


@pytest.fixture(scope="session")
def applied(tmp_path_factory: pytest.TempPathFactory, tracing: ForkServer, interpreting: ForkServer) -> Applied:
    """A program -> a folder with its files in `original`, and with their kernels applied in `edited`."""
    shared = shared_folder(tmp_path_factory, "changes")

    def folder_of(program: Program) -> Path:
        folder = shared / program.file

        def make() -> None:
            for side in ("original", "edited"):
                (folder / side).mkdir(parents=True, exist_ok=True)
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
