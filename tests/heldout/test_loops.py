"""Code in a loop: its kernels run at every step, and what they leave for the next step is right."""

from __future__ import annotations

import json
from pathlib import Path

from mugraph.edit.apply import apply_files
from mugraph.events import Done, FileResult
from mugraph.pipeline import Options, run

from tests.support.clock import FILE_S
from tests.support.forks import run_interpreted

PROGRAMS = Path(__file__).parent / "loops"
CHILD = Path(__file__).parent / "run_loops_child.py"


def optimized(path: Path) -> FileResult:
    for event in run(path, options=Options(target="h100", budget_s=1.0, file_budget_s=FILE_S, measure=False)):
        if isinstance(event, Done):
            return event.result
    raise AssertionError("the pipeline ended without a result")


def launches(name: str, steps: int, folder: Path) -> dict[str, dict[str, int]]:
    """Of each region, by its function and first line's text, how often its kernels ran."""
    path, original = folder / name, folder / "original.py"
    for copy in (path, original):
        copy.write_bytes((PROGRAMS / name).read_bytes())
    result = optimized(path)
    assert result.errors == ()
    regions = [region for region in result.regions if region.plan is not None]
    plans = [region.plan for region in regions if region.plan is not None]
    sources = {key: source for region in regions for key, source in region.sources.items()}
    written = apply_files(path, plans, sources)
    ran = json.loads(run_interpreted(CHILD, str(original), str(path), str(written.module), str(steps)).splitlines()[-1])
    assert ran["error"] < 1e-5
    return {
        region.region.text.partition("\n")[0].strip(): {
            source.name: ran["launches"].get(f"launch_{source.name}", 0) for source in region.sources.values()
        }
        for region in regions
    }


def test_a_token_at_each_position(tmp_path: Path) -> None:
    """Positions 1 to 31 of 0 to 31: with the last the cache is full. That and the first are left to the original."""
    found = launches("tokens.py", 32, tmp_path)
    (attention,) = (counts for text, counts in found.items() if text.startswith("scores = "))
    assert set(attention.values()) == {30}
    (projections,) = (counts for text, counts in found.items() if text.startswith("q, k, v = "))
    assert set(projections.values()) <= {32}


def test_a_step_of_a_recurrence(tmp_path: Path) -> None:
    found = launches("scan.py", 28, tmp_path)
    (step,) = (counts for text, counts in found.items() if text.startswith("x = decay[:, i]"))
    assert set(step.values()) == {28}
    (before,) = (counts for text, counts in found.items() if text.startswith("decay = "))
    assert set(before.values()) == {1}
