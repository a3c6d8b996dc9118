"""The cost model ranks kernels whose times were measured on a device. Floors are slightly under what it reaches."""

from __future__ import annotations

from pathlib import Path

import pytest
from mugraph.research.calibration import main, pooled, read, scores, timed

MEASURED = Path(__file__).parent / "measured_h200.json"


def test_estimates_follow_measurements() -> None:
    rows = timed(read(MEASURED))
    own = scores(rows)
    assert len(rows) > 800
    assert pooled(rows) > 0.97
    assert sum(score.spearman for score in own.values()) / len(own) > 0.7
    for program, score in own.items():
        assert score.regret <= 1.03, program
        assert score.spearman > 0.2, program
        assert 0.7 < score.bias < 1.4, program


def test_the_table_is_printed(capsys: pytest.CaptureFixture[str]) -> None:
    assert main([str(MEASURED)]) == 0
    assert "NVIDIA H200" in capsys.readouterr().out
    assert main([]) == 2
    assert main(["no such file"]) == 2
