"""The table of the samples' answers: what it says of answers made by hand, and that it goes on where it stopped."""

from __future__ import annotations

import sys
from pathlib import Path

import msgspec
import pytest
from mugraph.research import answers
from mugraph.research.answer import OURS, Answer
from mugraph.research.answers_table import plot, speedups, tables


def answer(number: int, function: str, ours: float, **given: object) -> Answer:
    times = {"eager": 10.0, "torch.compile": 8.0, "max-autotune": 9.0, OURS: ours}
    made = Answer(
        "samples/one.py", number, function, "improved", None, True, None, "a GPU", {"search": 1.0}, times, times,
        {"eager": 12.0, "torch.compile": 9.0, OURS: 4.0}, 10 / ours, 8 / ours, 10 / ours, 8 / ours, True, 5.0,
    )  # fmt: skip
    return msgspec.structs.replace(made, **given)


def test_tables_name_what_is_offered_and_slower_and_how_far_estimates_are() -> None:
    found = [answer(0, "first", 4.0, start_s=6.0), answer(1, "second", 9.5, status="no-gain"), answer(2, "slow", 9.3)]
    said = tables([*found, answer(3, "not looked at", 4.0, searched=False)])
    assert "slow (on the device, 0.86 of torch.compile), " in said
    assert "slow (as called, 0.97 of max-autotune)" not in said  # no more than calls differ by
    assert "second (" not in said
    assert "offered: 2 of 3" in said
    assert "median of 3 regions: 8.7 with its share of the start of its file's run, 5.0 without" in said
    assert speedups(found, ["eager"]) == [(3.0, 2.5), (3.0, 10 / 9.5), (3.0, 10 / 9.3)]
    assert speedups(found[:1], ["eager", "torch.compile"]) == [(2.25, 2.0)]
    assert plot(found).count("<circle") == 3


def test_a_run_that_was_stopped_goes_on(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Answers that came before the end of its time are not asked for again."""
    line = msgspec.json.encode(answer(0, "first", 4.0)).decode()
    file, out, slow = tmp_path / "one.py", tmp_path / "out.json", tmp_path / "slow"
    for path in (file, slow):
        path.touch()
    script = tmp_path / "child.py"
    script.write_text(
        f"import json, os, sys, time\nmade = json.loads({line!r})\nmade['file'] = sys.argv[1]\n"
        "known = [int(one) for one in sys.argv[6:]]\n"
        "for number in (0, 1):\n"
        "    if number not in known:\n"
        "        print(json.dumps({**made, 'number': number, 'function': str(known)}), flush=True)\n"
        f"    while os.path.exists({str(slow)!r}):\n        time.sleep(0.01)\n"
    )
    monkeypatch.setattr(answers, "CHILD", (sys.executable, str(script)))
    monkeypatch.setattr(answers, "_import_s", lambda: 1.0)
    asked = ["--json", str(out), str(file)]
    assert answers.main([*asked, "--limit", "2"]) == 1
    assert [one.number for one in answers.read(out).answers] == [0]
    slow.unlink()
    assert answers.main(asked) == 0
    assert [(one.number, one.function) for one in answers.read(out).answers] == [(0, "[]"), (1, "[0]")]
    assert answers.main([*asked, "--show"]) == 0
