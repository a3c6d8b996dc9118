"""Whatever is done to a program after its kernels were applied, it gives what the original gives.

Each change is made to both, the original and the edited program, which then run for real: the kernels in Triton's
interpreter, on tensors of the CPU that count as those of the device the kernels are made for.
"""

from __future__ import annotations

import pytest

from tests.changes.case import Change, all_changes
from tests.changes.conftest import CameOf

CHANGES = all_changes()


def test_there_are_changes_of_many_kinds() -> None:
    assert len({change.make for change in CHANGES.values()}) >= 300
    assert len({change.make for change in CHANGES.values() if change.runs == "original"}) >= 240


@pytest.mark.parametrize("change", CHANGES.values(), ids=CHANGES)
def test_change(change: Change, came_of: CameOf) -> None:
    for when, came in came_of(change).items():
        assert came["wrong"] == [], when
        if change.runs != "any":
            assert (came["launches"] > 0) == (change.runs == "kernel"), f"{when}: {came['launches']} kernels ran"
        assert all(launches > 0 for launches in came["warmed"]), "no kernel ran before the change"
