"""What the store gives back is verified again: a candidate that was changed in it is searched for anew."""

from __future__ import annotations

import json
import sqlite3
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any

import pytest
from mugraph.events import Done, FileResult
from mugraph.ir.block import BlockGraph, Schedule
from mugraph.ir.kernel import KernelSource
from mugraph.ir.program import TensorProgram
from mugraph.memory import units
from mugraph.options import Options
from mugraph.pipeline import run
from mugraph.reports.evidence import evidence
from mugraph.store import Store
from mugraph.verification.verdict import Verdict

MODEL = """\
import torch


# mugraph: x=f16[8, 512], w=f16[512, 512]
def scaled(x: torch.Tensor, w: torch.Tensor) -> torch.Tensor:
    return torch.relu(x @ w) * 2.5
"""
RANGED = MODEL.replace("x=f16[8, 512]", "x=f16[b, 512], b=1..64")

Json = dict[str, Any]


@pytest.fixture
def path(tmp_path: Path) -> Path:
    path = tmp_path / "model.py"
    path.write_text(MODEL)
    return path


def optimized(path: Path) -> tuple[FileResult, list[str]]:
    """The result, and what the store had to say."""
    with Store.open(path.with_name("results.sqlite")) as store:
        options = Options(target="h100", budget_s=5, measure=False)
        (done,) = [event for event in run(path, None, options, store=store) if isinstance(event, Done)]
        return done.result, list(store.notices)


def edit(path: Path, change: Callable[[Json], None], *, mark: bool) -> None:
    """Sealed anew; mark: marked anew too, as somebody would who knows of it"""
    file = path.with_name("results.sqlite")
    with sqlite3.connect(file) as database:
        rows = database.execute("select key, document from results").fetchall()
    with Store.open(file) as store:
        for key, _ in rows:
            document = store.get(key)
            if document is None or "candidate" not in document:
                continue
            changed: Json = json.loads(json.dumps(document))
            change(changed)
            if mark:
                changed["mark"] = units._mark(changed)
            store.put(key, changed)


def first_op(document: Json, kind: str) -> Json:
    found: list[Json] = [op for op in document["candidate"]["block"]["ops"] if op["kind"] == kind]
    return found[0]


def other_constant(document: Json) -> None:
    first_op(document, "const")["value"] = 2.0


def other_function(document: Json) -> None:
    first_op(document, "unary")["fn"] = "sigmoid"


def other_strides(document: Json) -> None:
    tensor = document["candidate"]["block"]["tensors"][1]
    tensor["strides"] = tensor["strides"][::-1]


def other_type(document: Json) -> None:
    document["candidate"]["block"]["tensors"][0]["dtype"] = "bf16"


def no_tile(document: Json) -> None:
    grid = document["candidate"]["schedule"]["grid"]
    grid[0] = [grid[0][0], 0]


def no_warps(document: Json) -> None:
    document["candidate"]["schedule"]["num_warps"] = -1


def not_passed(document: Json) -> None:
    document["verdict"]["passed"] = False


CHANGES = {
    change.__name__: change
    for change in (other_constant, other_function, other_strides, other_type, no_tile, no_warps, not_passed)
}


def source_of(result: FileResult) -> KernelSource:
    (region,) = result.regions
    (source,) = region.sources.values()
    return source


def test_what_is_as_it_was_is_used_and_says_what_was_run_again(path: Path) -> None:
    first, _ = optimized(path)
    second, notices = optimized(path)
    assert notices == []
    (one,), (other,) = ([p for r in result.regions for p in r.units] for result in (first, second))
    assert (one.from_store, other.from_store) == (False, True)
    assert one.solution is not None
    assert other.solution is not None
    assert not one.solution.verdict.float_from_store
    assert other.solution.verdict.float_from_store
    assert "from the store" in " ".join(evidence(other.solution.verdict))
    assert "from the store" not in " ".join(evidence(one.solution.verdict))
    assert "full size" in (other.solution.verdict.indexing or "")
    assert first.preview == second.preview


@pytest.mark.parametrize("mark", [False, True])
@pytest.mark.parametrize("name", CHANGES)
def test_what_was_changed_is_searched_for_again(path: Path, name: str, mark: bool) -> None:
    first, _ = optimized(path)
    edit(path, CHANGES[name], mark=mark)
    second, notices = optimized(path)
    (unit,) = [p for r in second.regions for p in r.units]
    assert not unit.from_store
    assert source_of(second).jit == source_of(first).jit
    assert any("searched for again" in notice for notice in notices)
    third, notices = optimized(path)
    assert notices == []
    assert [p.from_store for r in third.regions for p in r.units] == [True]


def test_an_entry_that_was_changed_by_hand_is_said(path: Path) -> None:
    first, _ = optimized(path)
    with sqlite3.connect(path.with_name("results.sqlite")) as database:
        database.execute("update results set document = replace(document, '2.5', '2.0')")
    second, notices = optimized(path)
    assert any("was changed since it was written" in notice for notice in notices)
    assert not any(part.from_store for region in second.regions for part in region.units)
    assert source_of(second).jit == source_of(first).jit


def other_warps(document: Json) -> None:
    schedule = document["candidate"]["schedule"]
    schedule["num_warps"] = 4 if schedule["num_warps"] != 4 else 8
    for row in document["launches"][0]:
        row[1]["num_warps"] = schedule["num_warps"]


def no_text(document: Json) -> None:
    del document["text"]


@pytest.mark.parametrize(("change", "runs"), [(None, 0), (other_warps, 1), (no_text, 1)])
def test_a_text_is_run_again_where_it_is_another(
    path: Path, monkeypatch: pytest.MonkeyPatch, change: Callable[[Json], None] | None, runs: int
) -> None:
    """In this process: a text over the fields."""
    first, _ = optimized(path)
    if change is not None:
        edit(path, change, mark=True)
    ran: list[str] = []
    whole = units.text_checked

    def counted(
        program: TensorProgram, source: KernelSource, kernels: Sequence[tuple[BlockGraph, Schedule]]
    ) -> Verdict:
        ran.append(source.standalone())
        return whole(program, source, kernels)

    monkeypatch.setattr(units, "text_checked", counted)
    second, notices = optimized(path)
    assert notices == []
    assert len(ran) == runs
    assert (source_of(second).standalone() == source_of(first).standalone()) == (change is not other_warps)
    (one,), (other,) = ([p.solution for r in result.regions for p in r.units] for result in (first, second))
    assert one is not None
    assert other is not None
    assert one.verdict.text == other.verdict.text


def test_a_kept_text_does_not_cover_another_version(path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    first, _ = optimized(path)
    (unit,) = [p for r in first.regions for p in r.units]
    before = units._text_digest(unit.unit, source_of(first))
    monkeypatch.setattr(units, "code_digest", lambda: "another")
    assert units._text_digest(unit.unit, source_of(first)) != before


def missing_largest(document: Json) -> None:
    document["launches"][0] = document["launches"][0][:-1]


def other_order(document: Json) -> None:
    document["launches"][0] = document["launches"][0][::-1]


def tiles_of_nothing(document: Json) -> None:
    for row in document["launches"][0]:
        row[1]["grid"] = [[axis, -4] for axis, _ in row[1]["grid"]]


@pytest.mark.parametrize("change", [missing_largest, other_order, tiles_of_nothing])
def test_schedules_by_size_are_looked_at_too(path: Path, change: Callable[[Json], None]) -> None:
    path.write_text(RANGED)
    first, _ = optimized(path)
    assert len(source_of(first).launches) > 1
    assert optimized(path)[1] == []
    edit(path, change, mark=True)
    second, notices = optimized(path)
    assert not any(p.from_store for r in second.regions for p in r.units)
    assert len(notices) == 1
    assert source_of(second).launches == source_of(first).launches
