"""Units whose recorded calls name numbers that are made of sizes (parts of a split, the last place of a row), or whose
dimensions the program does not tell apart."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

import pytest
from mugraph.ir.region import SearchUnit
from mugraph.trace.tracer import trace_file
from mugraph.units.region_units import cut_region
from mugraph.verification.lowering import run
from mugraph.verification.lowering.run import beside_calls

from tests.engine.verification.lowering_mutants import mutants

PROGRAMS = {
    "split": (
        "x=f32[64, 72, 192]",
        """
    q, k, v = x.split(64, dim=2)
    return torch.softmax(q @ k.transpose(-2, -1), -1) @ v""",
    ),
    "thirds": (
        "x=f32[160, 192]",
        """
    gate = x[..., 128:]
    return torch.sigmoid(gate) * x[..., :64] + x[..., 64:128]""",
    ),
    "last": (
        "x=f32[176, 80], y=f32[176, 80]",
        """
    last = x[..., 79]
    return (torch.exp(last[:, None] - x) * y).sum(-1)""",
    ),
    "images": (
        "x=f32[40, 36, 40], y=f32[40, 36, 40]",
        """
    return torch.nn.functional.mish(x * torch.sigmoid(y)) + 0.5 * y""",
    ),
}


@pytest.fixture
def unit(request: pytest.FixtureRequest, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> SearchUnit:
    """Too large for a check at its own sizes."""
    monkeypatch.setattr(run, "QUICK_ELEMENTS", 3e4)
    monkeypatch.setattr(run, "MOST_ELEMENTS", 0.0)
    shapes, body = PROGRAMS[request.param]
    names = ", ".join(part.split("=")[0] for part in shapes.replace("], ", "];").split(";"))
    path = tmp_path / "program.py"
    path.write_text(f"import torch\n\n\n# mugraph: {shapes}\ndef f({names}):{body}\n")
    (region,) = trace_file(path).regions
    (found,) = [part for part in cut_region(region)[1] if isinstance(part, SearchUnit)]
    return found


@pytest.mark.parametrize("unit", PROGRAMS, indirect=True)
def test_its_calls_are_made_for_smaller_sizes(unit: SearchUnit) -> None:
    found = beside_calls(unit, 0)
    assert found.passed, found
    assert found.sizes
    assert all(size < unit.program.sizes[axis] for axis, size in found.sizes.items())


@pytest.mark.parametrize("unit", PROGRAMS, indirect=True)
def test_another_program_does_not_pass_because_of_a_guess(unit: SearchUnit) -> None:
    others = list(mutants(unit.program))
    assert others
    assert not [what for what, wrong in others if beside_calls(replace(unit, program=wrong), 0).passed]


@pytest.mark.parametrize("unit", PROGRAMS, indirect=True)
def test_smaller_sizes_come_first_where_its_own_are_not_instant(
    unit: SearchUnit, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(run, "QUICK_ELEMENTS", 1e9)
    assert not beside_calls(unit, 0).sizes
    monkeypatch.setattr(run, "INSTANT_ELEMENTS", 0.0)
    assert beside_calls(unit, 0).sizes

    def none(_: SearchUnit) -> tuple[SearchUnit, ...]:
        return ()

    monkeypatch.setattr(run, "smaller_units", none)
    found = beside_calls(unit, 0)
    assert found.passed
    assert not found.sizes
