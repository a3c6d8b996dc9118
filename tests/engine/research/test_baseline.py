"""The command that measures, fits and compares: here without a GPU, on points made by hand."""

from __future__ import annotations

from pathlib import Path

import pytest
from mugraph.baseline.rates import Fitted, Rates
from mugraph.codegen.plain import region_source
from mugraph.research import baseline, grid
from mugraph.research.points import Point, Points, read, traced, write

HEAD = "import torch\nimport torch.nn.functional as F\n\n\n"


def points() -> Points:
    def one(name: str, text: str, **us: float) -> Point:
        times = {key.replace("compiled", "torch.compile"): value for key, value in us.items()}
        return Point(name, f"{HEAD}# mugraph: x=f16[64, 256], w=f16[256, 512]\ndef program(x, w):\n    {text}\n", times)

    made = [
        one("product", "return x @ w", eager=4.0, compiled=4.0),
        one("gelu", "return F.gelu(x @ w)", eager=7.0, compiled=6.0),
        one("norm", "return F.rms_norm(x, (256,)) @ w", eager=6.0, compiled=6.5),
        one("softmax", "return torch.softmax(x @ w, -1)", eager=7.5, compiled=7.0),
        one("chain", "return (x @ w) @ w.t()", eager=7.0, compiled=7.0),
    ]
    return Points("a GPU", "h200", "2026-11-22", "a clock", made)


def test_the_grid_has_more_than_two_hundred_programs_with_regions() -> None:
    """Each kind of it at one size is traced, and can be run as it is."""
    every = grid.programs()
    assert len({point.name for point in every}) == len(every) >= 200
    chosen = list({point.name.split(", f")[0]: point for point in every}.values())
    regions = traced(chosen)
    assert [point.name for point, region in zip(chosen, regions, strict=True) if region is None] == []
    for region in regions:
        assert region is not None
        compile(region_source(region), "program.py", "exec")


def test_compare_and_fit(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]) -> None:
    file, rates = tmp_path / "points.json", tmp_path / "rates.json"
    write(points(), file)
    assert read(file) == points()
    samples = baseline.samples_of([file])
    assert len(samples) == 5
    found = baseline.refit(samples, "a GPU", "2026-11-22", rates)
    assert (found.device, found.points) == ("a GPU", 10)
    import msgspec

    assert msgspec.json.decode(rates.read_bytes(), type=Fitted) == found
    assert found.rates != Rates()
    baseline.compare(samples, None, None)
    said = capsys.readouterr().out
    assert said.count("median error") == 3
    assert said.count("within 30 %") == 3


def test_without_a_gpu_nothing_is_measured(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    import torch

    if torch.cuda.is_available():
        pytest.skip("there is a GPU")
    assert baseline.main(["measure", str(tmp_path / "points.json")]) == 1
    assert "GPU" in capsys.readouterr().err
    assert list(tmp_path.iterdir()) == []


def test_points_that_cannot_be_read(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert baseline.main(["compare", str(tmp_path / "none.json")]) == 2
    broken = tmp_path / "broken.json"
    broken.write_text("{")
    assert baseline.main(["compare", str(broken)]) == 2
    assert capsys.readouterr().err.count("the points cannot be read") == 2
