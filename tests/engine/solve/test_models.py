"""Whole models without a GPU: side by side as one after the other, within a file's time, and nothing left unsaid."""

from __future__ import annotations

import re
from itertools import count
from pathlib import Path

import pytest
from mugraph.events import Done, Event, FileResult, RegionResult, UnitResult, Working
from mugraph.options import Options
from mugraph.pipeline import run
from mugraph.reports.document import file_document
from mugraph.reports.text import print_report
from mugraph.store import Store
from rich.console import Console

MODEL = """\
import torch
from torch import nn


class Layer(nn.Module):
    def __init__(self, width, hidden):
        super().__init__()
        self.up = nn.Linear(width, hidden, bias=False)
        self.down = nn.Linear(hidden, width, bias=False)

    def forward(self, x):
        return x + torch.sigmoid(self.down(torch.relu(self.up(x))))


class Model(nn.Module):
    def __init__(self):
        super().__init__()
        self.layers = nn.Sequential(Layer(64, 128), Layer(64, 128), Layer(64, 256), Layer(64, 384))

    def forward(self, x):
        return self.layers(x)


def get_inputs():
    return [torch.rand(16, 64)]


def get_init_inputs():
    return []
"""
"""Two equal layers, and two that have other sizes."""


def options(**more: float) -> Options:
    return Options(target="h100", measure=False, budget_s=3.0, **more)  # pyright: ignore[reportArgumentType]


@pytest.fixture
def model(tmp_path: Path) -> Path:
    path = tmp_path / "model.py"
    path.write_text(MODEL)
    return path


def solved(path: Path, given: Options, store: Store | None = None) -> tuple[FileResult, list[Event]]:
    events = list(run(path, None, given, store=store))
    (done,) = (event for event in events if isinstance(event, Done))
    return done.result, events


def units(result: FileResult) -> list[UnitResult]:
    return [unit for region in result.regions for unit in region.units]


def chosen(result: FileResult) -> list[tuple[object, ...]]:
    found: list[tuple[object, ...]] = []
    for region in result.regions:
        found.append((region.status, region.reason))
        for unit in region.units:
            made = unit.solution
            found.append((unit.kernel, unit.reason, made and (made.source.jit, made.estimate_us, made.tested)))
    return found


def test_side_by_side_the_same_is_found(model: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("mugraph.pipeline.processors", lambda: 1)
    alone, _ = solved(model, options(file_budget_s=1e6))
    monkeypatch.setattr("mugraph.pipeline.processors", lambda: 2)
    beside, events = solved(model, options(file_budget_s=1e6))
    assert len(units(alone)) >= 4
    assert chosen(beside) == chosen(alone)
    assert all(unit.searched for unit in units(beside))
    told = [event for event in events if isinstance(event, Working) and "at a time" in event.what]
    assert told
    assert all(0 <= event.done <= event.of for event in told)
    assert any(event.done for event in told)


def test_what_was_checked_beside_is_not_checked_here_under_another_name(
    model: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A unit that is begun for one cut of a region may be asked for by another, which calls its kernel otherwise."""
    numbers, checked = count(), list[object]()
    monkeypatch.setattr("mugraph.pipeline.processors", lambda: 2)
    monkeypatch.setattr("mugraph.solve.job.kernel_name", lambda *_: f"kernel_{next(numbers)}")
    monkeypatch.setattr("mugraph.solve.lowering.check_lowering", lambda unit, *_: checked.append(unit))
    result, _ = solved(model, options(file_budget_s=1e6))
    tested = [made for unit in units(result) if (made := unit.solution) and made.tested]
    assert tested
    assert all(made.verdict.lowering is not None and made.verdict.lowering.passed for made in tested)
    assert not checked


@pytest.mark.parametrize("workers", [1, 2])
def test_what_is_late_is_said_of_each_unit(model: Path, monkeypatch: pytest.MonkeyPatch, workers: int) -> None:
    monkeypatch.setattr("mugraph.pipeline.processors", lambda: workers)
    result, _ = solved(model, options(file_budget_s=0.0))
    assert result.regions
    left = units(result)
    assert left
    for unit in left:
        assert not unit.searched
        assert unit.solution is None
        assert re.fullmatch(r"not searched: the .* s for the file were over .*--file-budget.*", unit.reason or "")
    region = next(region for region in result.regions if region.units)
    assert region.status == "no-gain"
    assert "not searched" in (region.reason or "")


def half_late(result: RegionResult) -> bool:
    return 0 < sum(not unit.searched for unit in result.units) < len(result.units)


def test_a_region_that_is_searched_in_part_says_so(
    model: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    """The time is over after the first unit."""
    monkeypatch.setattr("mugraph.pipeline.processors", lambda: 1)
    asked = iter([False] + [True] * 1000)
    monkeypatch.setattr("mugraph.solve.filetime.FileTime.is_over", property(lambda _: next(asked)))
    result, _ = solved(model, options())
    (region,) = (region for region in result.regions if half_late(region))
    said = region.unsearched or ""
    assert re.match(r"\d of its \d search units were not searched: ", said)
    assert "--file-budget" in said
    (document,) = (one for one in _regions(result) if one.get("unsearched"))
    assert document["unsearched"] == said
    print_report(result, Console(width=400), verbose=False)
    assert said in capsys.readouterr().out


def _regions(result: FileResult) -> list[dict[str, object]]:
    found = file_document(result)["regions"]
    assert isinstance(found, list)
    return found  # pyright: ignore[reportUnknownVariableType]


def test_what_was_late_is_searched_by_the_next_run(
    model: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """It is not kept as something that has no kernel."""
    monkeypatch.setattr("mugraph.pipeline.processors", lambda: 1)
    with Store.open(tmp_path / "store.db") as store:
        first, _ = solved(model, options(file_budget_s=0.0), store)
        second, _ = solved(model, options(file_budget_s=1e6), store)
    assert not any(unit.searched for unit in units(first))
    assert all(unit.searched for unit in units(second))
    assert any(unit.solution for unit in units(second))


SLOW = """\
import torch


# mugraph: x=f16[2048, 4096], w=f16[4096, 4096]
def product(x: torch.Tensor, w: torch.Tensor) -> torch.Tensor:
    return x @ w


# mugraph: x=f16[512, 1024], y=f16[512, 1024]
def gated(x: torch.Tensor, y: torch.Tensor) -> torch.Tensor:
    return (torch.sigmoid(x) * y).sum(1)
"""


def test_a_kernel_that_cannot_pay_is_shown_and_not_run(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    path = tmp_path / "slow.py"
    path.write_text(SLOW)
    with Store.open(tmp_path / "store.db") as store:
        for again in (False, True):
            result, _ = solved(path, options(), store)
            tested = {unit.unit.program.name: made.tested for unit in units(result) if (made := unit.solution)}
            for unit in units(result):
                made = unit.solution
                assert made is not None
                assert unit.from_store == again
                assert made.verdict.passed
                assert made.tested == made.is_expected_to_pay == made.pays
                assert (made.verdict.text is not None) == made.tested
                assert (made.verdict.max_rel_error is not None) == made.tested
            assert set(tested.values()) == {True, False}
    print_report(result, Console(width=400), verbose=True)
    said = capsys.readouterr().out
    assert "no floating-point test was run" in said
    assert "its own tiles, loops and masks were not run" in said
