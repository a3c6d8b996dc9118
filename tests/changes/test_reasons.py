"""Why a kernel was not taken, as `mugraph check --run` says it, after changes to the program."""

from __future__ import annotations

import json
from pathlib import Path
from subprocess import PIPE

import pytest

from tests.changes.case import GATED, all_changes
from tests.changes.conftest import Applied
from tests.support.forks import Fork, ForkServer

CHILD = Path(__file__).parent / "reasons_child.py"
WHY = {
    "nothing-gated": "taken",
}


@pytest.fixture(scope="module")
def reasons(applied: Applied, interpreting: ForkServer) -> dict[str, dict[str, int]]:
    child = Fork(interpreting, str(CHILD), [str(applied(GATED)), *WHY], stdout=PIPE)
    said, _ = child.communicate()
    return json.loads(said)


@pytest.mark.parametrize("change", WHY)
def test_why(change: str, reasons: dict[str, dict[str, int]]) -> None:
    assert all_changes()[change].program is GATED
    assert list(reasons[change]) == [WHY[change]]
