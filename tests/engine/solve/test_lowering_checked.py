"""A kernel is offered only where its tensor program is what the recorded calls compute."""

from __future__ import annotations

from pathlib import Path

import pytest
from mugraph.events import Done, RegionResult
from mugraph.ir.region import SearchUnit
from mugraph.log import log_path
from mugraph.options import Options
from mugraph.pipeline import run
from mugraph.reports.document import file_document
from mugraph.reports.evidence import evidence
from mugraph.solve.lowering import lowering_of
from mugraph.solve.telling import Place
from mugraph.solve.tools import Tools
from mugraph.store import Store
from mugraph.targets import TARGETS
from mugraph.trace.tracer import trace_file
from mugraph.units.region_units import cut_region
from mugraph.verification.float_results import LoweringResult
from mugraph.verification.float_test import LATE, FloatTester

from tests.support.mislowered import RIGHT, WRONG


def solved(folder: Path, *functions: str, store: Store | None = None) -> dict[str, RegionResult]:
    path = folder / "model.py"
    path.write_text("import torch\n" + "".join(functions))
    options = Options(target="h100", measure=False, budget_s=3.0)
    (done,) = (event for event in run(path, None, options, store=store) if isinstance(event, Done))
    return {region.region.function: region for region in done.result.regions}


@pytest.mark.usefixtures("a_cast_is_nothing")
@pytest.mark.parametrize("functions", [(WRONG,), (WRONG, RIGHT), (RIGHT, WRONG)])
def test_wrong_programs_have_no_kernel(functions: tuple[str, ...], tmp_path: Path) -> None:
    """Nor do they say anything of other calls that have the same program."""
    found = solved(tmp_path, *functions)
    wrong = found["wrong"]
    assert wrong.status != "improved"
    assert wrong.plan is None
    assert wrong.reason is not None
    assert "the program is not what PyTorch's own calls compute: of " in wrong.reason
    assert "(line " in wrong.reason
    assert "is not offered" in log_path().read_text()
    if "right" in found:
        assert found["right"].status == "improved"


def test_what_was_found_is_said(tmp_path: Path) -> None:
    found = solved(tmp_path, RIGHT)["right"]
    assert found.status == "improved"
    (unit,) = found.units
    assert unit.solution is not None
    lowering = unit.solution.verdict.lowering
    assert lowering is not None
    assert lowering.passed
    assert lowering.words in evidence(unit.solution.verdict)


def test_it_is_looked_at_once(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    asked: list[object] = []
    own = FloatTester.test_lowering

    def counted(tester: FloatTester, unit: object, *rest: object) -> LoweringResult:
        asked.append(unit)
        return own(tester, unit, *rest)  # pyright: ignore[reportArgumentType]

    monkeypatch.setattr(FloatTester, "test_lowering", counted)
    store = Store.open(tmp_path / "store.db")
    first = solved(tmp_path, RIGHT, store=store)["right"]
    again = solved(tmp_path, RIGHT.replace("right(x)", "other(x)"), store=store)["other"]
    assert len(asked) == 1
    assert first.status == again.status == "improved"
    assert again.units[0].from_store
    assert again.units[0].lowering == first.units[0].lowering


def test_what_cannot_be_checked_is_said(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(FloatTester, "test_lowering", lambda *_: LoweringResult(None, "it takes too long"))
    (done,) = (
        event
        for event in run(written(tmp_path), None, Options(target="h100", measure=False, budget_s=3.0))
        if isinstance(event, Done)
    )
    (region,) = done.result.regions
    assert region.status == "improved"
    (verdict,) = (unit.solution.verdict for unit in region.units if unit.solution is not None)
    said = "NOT CHECKED that the program is what PyTorch's own calls compute: it takes too long"
    assert said in evidence(verdict)
    document = file_document(done.result)["regions"]
    assert document[0]["verification"]["lowering"] == [{"passed": None, "note": "it takes too long"}]  # pyright: ignore


def written(folder: Path) -> Path:
    path = folder / "model.py"
    path.write_text("import torch\n" + RIGHT)
    return path


def test_what_there_was_no_time_for_is_looked_at_by_whoever_asks_next(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Not taken for something that cannot be told, with which a kernel may be offered."""
    (region,) = trace_file(written(tmp_path)).regions
    (unit,) = [unit for unit in cut_region(region)[1] if isinstance(unit, SearchUnit)]
    tools, place = Tools(TARGETS["h100"], FloatTester()), Place(0, 0, 1, "right", "right")
    answers = iter([LATE, LATE, "it takes too long"])
    monkeypatch.setattr(FloatTester, "test_lowering", lambda *_: LoweringResult(None, next(answers)))
    said = [lowering_of(unit, (), place, tools).note for _ in range(4)]
    assert said == [LATE, LATE, "it takes too long", "it takes too long"]
