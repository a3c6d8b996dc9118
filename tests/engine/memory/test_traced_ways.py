"""A way in which a function was called, and which is not searched, is told of."""

from __future__ import annotations

from pathlib import Path

import pytest
from mugraph.ir.region import Trace
from mugraph.memory.traced_ways import with_other_ways
from mugraph.recording.runs import Runs
from mugraph.recording.ways import Way

PATH = Path("model.py")
LATE = "model.py: tracing took more than 20 s"


@pytest.mark.parametrize(
    ("own", "said"),
    [((), [f"one of the ways in which it was called is not searched: {LATE}"]), ((LATE,), [])],
)
def test_why_a_way_is_left_out(monkeypatch: pytest.MonkeyPatch, own: tuple[str, ...], said: list[str]) -> None:
    """Once, and not where it is said of the first way."""

    def late(*_: object, **__: object) -> Trace:
        return Trace(str(PATH), errors=(LATE,))

    monkeypatch.setattr("mugraph.memory.traced_ways.traced", late)
    runs = Runs(calls={"f": ()}, ways=(Way({}, {}), Way({}, {})))
    found = with_other_ways(Trace(str(PATH), errors=own), PATH, "", runs, timeout_s=20.0, store=None)
    assert list(found.trace.notices) == said
    assert found.trace.errors == own
