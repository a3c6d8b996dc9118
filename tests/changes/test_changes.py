"""Whatever is done to a program after its kernels were applied, it gives what the original gives.

Each change is made to both, the original and the edited program, which then run for real: the kernels in Triton's
interpreter, on tensors of the CPU that count as those of the device the kernels are made for.
"""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

from tests.changes.case import Change, all_changes
from tests.changes.conftest import Applied
from tests.support.forks import run_interpreted

CHILD = Path(__file__).parent / "run_child.py"
CHANGES = all_changes()


@pytest.fixture(autouse=True)
def _forked(forks: None) -> None:
    """For all of them."""


def came_of(name: str, folder: Path) -> dict[str, Any]:
    """Of the change made before the program has run, and after: see run_child.py."""
    return json.loads(run_interpreted(CHILD, name, str(folder)))


def test_there_are_changes_of_many_kinds() -> None:
    assert len(CHANGES) >= 75
    assert sum(change.runs == "original" for change in CHANGES.values()) >= 60


@pytest.mark.parametrize("change", CHANGES.values(), ids=CHANGES)
def test_change(change: Change, applied: Applied) -> None:
    for when, came in came_of(change.name, applied(change.program)).items():
        assert came["wrong"] == [], when
        if change.runs != "any":
            assert (came["launches"] > 0) == (change.runs == "kernel"), f"{when}: {came['launches']} kernels ran"
        assert all(launches > 0 for launches in came["warmed"]), "no kernel ran before the change"
