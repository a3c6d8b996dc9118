"""Bars of what layers and whole models take."""

from __future__ import annotations

import json
import re
import sys
from pathlib import Path
from xml.etree import ElementTree

import pytest
from mugraph.research.bars import CUT, OURS, NoResults, Timed, bars, main, read, timed

RESULTS = Path(__file__).parents[3] / "samples" / "results"
LAYER = {
    "name": "step:Step.forward", "file": "step.py", "floor_us": 106.0, "optimized_us": 120.0,
    "peers_us": {"eager": 190.0, "torch.compile": 160.0},
    "as_called": {"optimized_us": 140.0, "peers_us": {"eager": 600.0, "reduce-overhead": 180.0}},
}  # fmt: skip
WHOLE = {
    "device_us": {"eager": 1000.0, "torch.compile": 1010.0, OURS: 760.0},
    "called_us": {"eager": 2000.0, "torch.compile": 1200.0, "reduce-overhead": 1040.0, OURS: 870.0},
}


def test_a_file_with_times_of_its_whole_has_no_bars_of_its_regions() -> None:
    document = {"workloads": [LAYER], "files": [{"file": "step.py", "kernelbench": {"times": WHOLE}}]}
    (one,) = timed(document)
    assert (one.name, one.replayed, one.called) == ("step", WHOLE["device_us"], WHOLE["called_us"])
    assert [one.name for one in timed({"workloads": [LAYER], "files": [{"file": "step.py", "kernelbench": None}]})] == [
        LAYER["name"]
    ]


def test_each_bar_is_as_long_as_its_time_and_the_line_stands_where_bytes_end() -> None:
    (layer,) = timed({"runs": [{"regions": [LAYER]}]})
    text = bars([layer], "Bars <of> a layer")
    root = ElementTree.fromstring(text)
    widths = {
        title.text: float(rect.get("width", ""))
        for rect in root.iter("{http://www.w3.org/2000/svg}rect")
        if (title := rect.find("{http://www.w3.org/2000/svg}title")) is not None
    }
    ours, code = widths[f"{layer.name}, mugraph: 120 µs"], widths[f"{layer.name}, code: 190 µs"]
    assert code / ours == pytest.approx(190 / 120, rel=1e-2)
    assert widths[f"{layer.name}, code: 600 µs"] == pytest.approx(
        CUT * widths[f"{layer.name}, mugraph: 140 µs"], rel=1e-2
    )
    assert "→ 600" in text
    lines = [float(x) for x in re.findall(r'class="bytes" x1="([\d.]+)"', text)]
    starts = sorted({float(rect.get("x", "")) for rect in root.iter("{http://www.w3.org/2000/svg}rect") if len(rect)})
    assert (lines[1] - starts[0]) / ours == pytest.approx(106 / 120, rel=1e-2)


def test_what_was_not_timed_has_no_bar() -> None:
    text = bars([Timed("a", None, {"eager": 10.0, OURS: 9.0}, {})], "One")
    assert text.count("<title>") == 2
    assert text.count('class="bytes"') == 1  # of the legend


@pytest.mark.parametrize("name", ["decoding-h200.json", "models-h200.json"])
def test_results_that_are_kept_are_drawn(name: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    out = tmp_path / "out.svg"
    monkeypatch.setattr(sys, "argv", ["bars", str(RESULTS / name), "--svg", str(out), "--of", "step", "prompt"])
    assert main() == 0
    assert "linear" not in out.read_text()
    assert len(read(RESULTS / name)) >= 4
    assert ElementTree.parse(out).getroot().tag.endswith("svg")
    assert (RESULTS / name.replace(".json", ".svg")).exists()


def test_other_files_are_told_of(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    path = tmp_path / "other.json"
    for text in ("[]", "no json", json.dumps({"files": [{}]})):
        path.write_text(text)
        with pytest.raises(NoResults):
            read(path)
    monkeypatch.setattr(sys, "argv", ["bars", str(path), "--svg", str(tmp_path / "out.svg")])
    assert main() == 2
    assert "has no times" in capsys.readouterr().err
