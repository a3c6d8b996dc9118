"""The cost model ranks kernels whose times were measured on a device. Floors are slightly under what it reaches."""

from __future__ import annotations

from pathlib import Path

import pytest
from mugraph.research.calibration import estimated, fit, main, pooled, scores, timed
from mugraph.research.fitting import agreement
from mugraph.research.measured import read
from mugraph.search.schedules.costs import Costs

MEASURED = Path(__file__).parent / "measured"
MANY, WIDE = MEASURED / "h200-schedules.json.gz", MEASURED / "h200-programs.json.gz"
"""Many schedules of fourteen programs; a few of two hundred."""


def test_schedules_are_told_apart() -> None:
    rows = estimated(timed(read(MANY)))
    own = scores(rows)
    assert len(rows) > 800
    assert pooled(rows) > 0.97
    assert sum(score.spearman for score in own.values()) / len(own) > 0.68
    for program, score in own.items():
        assert score.regret <= 1.03, program
        assert score.spearman > 0.2, program
        assert 0.7 < score.bias < 1.4, program


def test_the_least_estimate_of_a_program_is_its_least_time() -> None:
    own = scores(estimated(timed(read(WIDE))))
    assert len(own) > 200
    far = agreement([(score.best, 1.0) for score in own.values()])
    assert far.error < 0.14
    assert far.within > 0.88


def test_costs_are_found_again() -> None:
    """Of times that the model itself says, begun elsewhere."""
    rows = [row for row in timed(read(MANY)) if row.program in ("mha", "gated_mlp")][::8]
    true = Costs(fill_us=1.4, cached=1.3)
    told = [type(row)(row.program, row.kernels, row.library_us, row.estimated(true), row.target) for row in rows]
    found = fit(told, rounds=4)
    before = agreement([(row.estimated(), row.measured_us) for row in told])
    after = agreement([(row.estimated(found), row.measured_us) for row in told])
    assert after.error < before.error / 2


def test_the_table_is_printed(capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["compare", str(MANY)]) == 0
    assert "NVIDIA H200" in capsys.readouterr().out
    assert main(["compare", "no such file"]) == 2
