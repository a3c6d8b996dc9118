"""A kept trace answers only while everything that ran is what it was."""

from __future__ import annotations

import time
from pathlib import Path

import pytest
from mugraph.events import Done, FileResult
from mugraph.memory import traces
from mugraph.pipeline import Options, run
from mugraph.recording.runs import Runs
from mugraph.store import Store

MODEL = """\
import torch
from scales import SCALE


# mugraph: x=f16[8, 64], w=f16[64, 64]
def scaled(x: torch.Tensor, w: torch.Tensor) -> torch.Tensor:
    return (x @ w) * SCALE
"""


@pytest.fixture
def model(tmp_path: Path) -> Path:
    (tmp_path / "scales.py").write_text("SCALE = 2.0\n")
    path = tmp_path / "model.py"
    path.write_text(MODEL)
    return path


@pytest.fixture
def traced(monkeypatch: pytest.MonkeyPatch) -> list[Path]:
    """Files that were really run."""
    log: list[Path] = []
    real = traces.trace_file

    def noted(path: Path, **options: object) -> object:
        log.append(path)
        return real(path, **options)  # type: ignore[arg-type]

    monkeypatch.setattr(traces, "trace_file", noted)
    return log


def optimized(model: Path, store: Store, **more: object) -> FileResult:
    options = Options(target="h100", budget_s=2, measure=False)
    (done,) = [e for e in run(model, None, options, store=store, **more) if isinstance(e, Done)]  # type: ignore[arg-type]
    return done.result


def test_unchanged_file_is_not_run_again(model: Path, traced: list[Path]) -> None:
    with Store.in_memory() as store:
        first = optimized(model, store)
        began = time.perf_counter()
        second = optimized(model, store)
        print(f"second run: {(time.perf_counter() - began) * 1e3:.0f} ms")
    assert len(traced) == 1
    assert [r.status for r in first.regions] == [r.status for r in second.regions]
    assert [p.from_store for r in second.regions for p in r.units] == [True]
    assert first.preview == second.preview


def test_a_changed_module_it_imports_is_noticed(model: Path, traced: list[Path]) -> None:
    with Store.in_memory() as store:
        before = optimized(model, store).regions[0].region
        model.with_name("scales.py").write_text("SCALE = 3.0\n")
        after = optimized(model, store).regions[0].region
    assert len(traced) == 2
    assert before.calls != after.calls


def test_a_missing_module_it_imports_is_noticed(model: Path, traced: list[Path]) -> None:
    with Store.in_memory() as store:
        optimized(model, store)
        model.with_name("scales.py").unlink()
        assert optimized(model, store).errors
    assert len(traced) == 2


def test_an_unsaved_text_has_its_own(model: Path, traced: list[Path]) -> None:
    with Store.in_memory() as store:
        optimized(model, store)
        edited = optimized(model, store, source=MODEL.replace("* SCALE", "+ SCALE"))
        again = optimized(model, store, source=MODEL)
    assert len(traced) == 2
    assert edited.regions[0].region.calls != again.regions[0].region.calls


def test_a_failed_trace_is_not_kept(model: Path, traced: list[Path]) -> None:
    model.with_name("scales.py").unlink()
    with Store.in_memory() as store:
        assert optimized(model, store).errors
        assert optimized(model, store).errors
    assert len(traced) == 2


def test_recorded_shapes_are_part_of_the_key(model: Path, traced: list[Path]) -> None:
    with Store.in_memory() as store:
        optimized(model, store)
        optimized(model, store, runs=Runs({"scaled": {"x": "f16[16, 64]", "w": "f16[64, 64]"}}))
    assert len(traced) == 2
