"""What starting a kernel early gains, on a GPU: here, what would be measured."""

from __future__ import annotations

from pathlib import Path

import pytest
from mugraph.codegen.early import WAIT
from mugraph.codegen.prefetch import ASM
from mugraph.research import early
from mugraph.research.early import FORMS, NONE, Row, chain, main, table
from mugraph.research.on_device import small_inputs
from mugraph.targets import TARGETS


def test_a_chain_in_each_form(tmp_path: Path) -> None:
    found = chain("norms_2", tmp_path, TARGETS["h200"])
    assert [one.name for one in found.subjects] == [NONE, *FORMS]
    waits = {
        way: (text.count(WAIT), text.count("launch_pdl=True"), text.count(ASM)) for way, text in found.texts.items()
    }
    assert waits[NONE] == (0, 0, 0)
    assert waits["waiting"] == waits["loading"] == (1, 1, 0)
    assert waits["asking"][:2] == (1, 1)
    assert waits["asking"][2] > 0
    assert small_inputs(found.plan)[0].shape == (1, 4096)


def test_the_table() -> None:
    row = Row("norms_2", 2, 1, {NONE: 20.0, "asking": 18.0, "loading": None}, {NONE: 30.0}, {"asking": True})
    head, line = table([row]).splitlines()
    assert head.split()[:4] == ["program", "kernels", "early", NONE]
    assert line.split() == ["norms_2", "2", "1", "20.0", "18.0", "30.0", "yes"]
    assert table([Row("x", 2, 1, {}, {}, {"asking": False})]).splitlines()[1].split()[-1] == "NO"


def test_without_a_gpu_that_can_it_says_so(monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]) -> None:
    from mugraph.tune.device import Device

    a100 = TARGETS["a100"]
    monkeypatch.setattr(early, "detect", lambda: Device("an A100", "gpu", a100, a100.capability, "1"))
    assert main([]) == 1
    assert "no GPU here that can start a kernel" in capsys.readouterr().err
    with pytest.raises(SystemExit):
        main(["no_such_program"])
