"""What answers of ranges take beside those of one size: how it is counted and told."""

from __future__ import annotations

import subprocess
import sys

import pytest
from mugraph.research.answer import Answer
from mugraph.research.processor import processor_s
from mugraph.research.ranged.answers import Compared, Taken, less, main, table, taken
from mugraph.research.ranged.layers import LAYERS
from mugraph.trace.syntax.shapes import comment_text, parse_description


def answer(status: str, processor: float, spent: dict[str, float]) -> Answer:
    return Answer(
        "file.py", 0, "f", status, None, True, None, "cpu", spent, {}, {}, {}, seconds=9.0, processor_s=processor
    )


def test_regions_of_a_file_are_added_up() -> None:
    found = taken([answer("improved", 2.0, {"search": 1.0}), answer("no-gain", 3.0, {"search": 2.0, "other": 1.0})])
    assert (found.seconds, found.processor_s) == (18.0, 5.0)
    assert found.status == {"improved": 1, "no-gain": 1}
    assert found.spent_s == {"search": 3.0, "other": 1.0}
    quicker = Taken(30.0, 4.0, {}, {})
    assert less(found, quicker) is quicker
    assert less(None, found) is found
    assert less(None, None) is None


def test_times_are_of_the_processor() -> None:
    alone, ranged = Taken(3.0, 4.0, {"improved": 1}, {}), Taken(30.0, 6.0, {"improved": 2}, {})
    said = table([Compared("mlp", "b=64", alone, ranged)])
    assert "| mlp | b=64 | 4.0 s (3.0) | 6.0 s (30.0) | 1.50 | improved | 2 improved |" in said
    assert "geometric mean: 1.50 times, 1.50 at most" in said


def test_an_unknown_name_is_one_sentence(capsys: pytest.CaptureFixture[str]) -> None:
    with pytest.raises(SystemExit) as ended:
        main(["nothing"])
    assert ended.value.code == 2
    assert "no program is called nothing" in capsys.readouterr().err


def test_a_process_that_was_started_counts_while_it_runs_and_after() -> None:
    works = "import time\nwhile time.process_time() < 0.5: pass\nprint(flush=True)\ninput()"
    before = processor_s()
    child = subprocess.Popen([sys.executable, "-c", works], stdin=subprocess.PIPE, stdout=subprocess.PIPE)
    assert child.stdout is not None
    child.stdout.readline()
    while_it_runs = processor_s()
    child.communicate(b"\n")
    assert while_it_runs - before >= 0.45
    assert processor_s() - before >= 0.45


@pytest.mark.parametrize("name", LAYERS)
def test_layers_have_ranges_and_sizes_of_them(name: str) -> None:
    program = LAYERS[name]
    [said] = [text for line in program.ranged.splitlines() if (text := comment_text(line))]
    found = parse_description([said]).ranges.values()
    assert {one.name: (one.least, one.largest) for one in found} == program.ranges
    compile(program.ranged, name, "exec")
    assert program.points[-1] == {size: largest for size, (_, largest) in program.ranges.items()}
