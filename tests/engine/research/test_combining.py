"""What it gains to combine sums in the same launch, on a GPU: here, what would be measured."""

from __future__ import annotations

from pathlib import Path

import pytest
from mugraph.research import combining
from mugraph.research.combining import PROGRAMS, Row, main, pairs, table
from mugraph.research.on_device import small_inputs
from mugraph.solve.overlapping import COMBINED, USUAL
from mugraph.targets import TARGETS
from mugraph.trace.tracer import trace_file


def test_a_split_reduction_in_each_way(tmp_path: Path) -> None:
    target = TARGETS["h200"]
    (found,) = pairs("long_row", tmp_path, target, budget_s=1.0, most=1)
    assert [*found.ways][:2] == [USUAL, COMBINED]
    assert found.words.startswith("k_split/1 then ")
    assert small_inputs(found.plan)[0].shape == (1, 1 << 20)
    launches = {name: found.subject(name, target).source.count("_kernel[") for name in (USUAL, COMBINED)}
    assert launches == {USUAL: 2, COMBINED: 1}


@pytest.mark.parametrize("name", PROGRAMS)
def test_programs_are_one_region(name: str, tmp_path: Path) -> None:
    path = tmp_path / "program.py"
    path.write_text(PROGRAMS[name])
    assert [region.status for region in trace_file(path).regions] == [None]


def test_the_table() -> None:
    row = Row(
        "norm",
        "k_split/1 then",
        {USUAL: 7.0, COMBINED: 5.5},
        {USUAL: 9.0},
        {"a form": "it"},
        {USUAL: True, COMBINED: True},
    )
    lines = table([row, Row("norm", "", {USUAL: 1.0, COMBINED: 2.0}, {}, {}, {COMBINED: False})]).splitlines()
    assert lines[0].split() == ["program", "launched", "device", "called", "right"]
    assert lines[2].split() == [*USUAL.split(), "7.00", "9.00", "yes"]
    assert lines[3].split() == [*COMBINED.split(), "5.50", "yes"]
    assert lines[4].split() == ["a", "form", "WRONG:", "it"]
    assert lines[-1].split()[-1] == "NO"


def test_without_a_gpu_it_says_so(monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]) -> None:
    from mugraph.tune.device import Device

    cpu = TARGETS["cpu"]
    monkeypatch.setattr(combining, "detect", lambda: Device("a CPU", "cpu", cpu, cpu.capability, "1"))
    assert main([]) == 1
    assert "no GPU" in capsys.readouterr().err
    with pytest.raises(SystemExit):
        main(["no_such_program"])
