"""One kernel for a range beside kernels for each size: here by estimates; what is measured needs a GPU."""

from __future__ import annotations

import json
import subprocess
import sys
from pathlib import Path
from xml.etree import ElementTree

import msgspec
import pytest
from mugraph.research.ranged import __main__ as command
from mugraph.research.ranged.__main__ import RANGE, estimated, rows_of, tasks
from mugraph.research.ranged.curves import curves
from mugraph.research.ranged.made import Case, Made
from mugraph.research.ranged.programs import PROGRAMS, label
from mugraph.research.ranged.rows import Found, Row, geometric, summaries, table
from mugraph.store.keys import code_digest
from mugraph.trace.syntax.shapes import comment_text, parse_description
from mugraph.tune import device
from mugraph.tune.messages import InputSpec

MLP = PROGRAMS["gated_mlp"]


@pytest.mark.parametrize("name", PROGRAMS)
def test_the_comments_of_a_program(name: str) -> None:
    program = PROGRAMS[name]
    assert len(program.points) == 12
    [said] = [text for line in program.ranged.splitlines() if (text := comment_text(line))]
    ranges = parse_description([said]).ranges
    assert {one.name: (one.least, one.largest) for one in ranges.values()} == program.ranges
    for point in program.points:
        [said] = [text for line in program.at(point).splitlines() if (text := comment_text(line))]
        assert parse_description([said]).ranges == {}
        assert all(least <= point[name] <= largest for name, (least, largest) in program.ranges.items())


def test_ranges_come_first_then_sizes_in_turn() -> None:
    programs = [MLP, PROGRAMS["qknorm_attention"]]
    found = [(program.name, size) for program, size in tasks(programs, 2)]
    assert found == [
        ("gated_mlp", RANGE),
        ("qknorm_attention", RANGE),
        ("gated_mlp", "b=64"),
        ("qknorm_attention", "t=100, s=3000"),
        ("gated_mlp", "b=256"),
        ("qknorm_attention", "t=256, s=4096"),
    ]
    every = tasks([*PROGRAMS.values()], 12)
    assert len({(program.name, size) for program, size in every}) == 5 + 60
    assert {size for _, size in every[-5:]} >= {"n=1", "t=1", "b=1"}


def case(size: int, us: float, *, offered: bool = True) -> Case:
    return Case({"b": size}, [], "", offered, us, 20.0)


def test_cases_of_the_same_tensors() -> None:
    def of(shape: tuple[int, ...], strides: tuple[int, ...], dtype: str = "f16") -> Case:
        return Case({"t": 4}, [InputSpec(shape, strides, dtype)], "", True, 1.0, 1.0)

    assert command.is_same(of((1, 4, 8), (4096, 8, 1)), of((1, 4, 8), (32, 8, 1)))
    assert not command.is_same(of((2, 4, 8), (4096, 8, 1)), of((2, 4, 8), (32, 8, 1)))
    assert not command.is_same(of((4, 8), (8, 1)), of((4, 8), (8, 1), "bf16"))


def test_rows_say_what_is_not_there() -> None:
    made = {
        (MLP, RANGE): Made("improved", "", "text", "f", [case(1, 10.0), case(256, 30.0, offered=False)]),
        (MLP, "b=1"): Made("improved", "", "text", "f", [case(1, 9.0)]),
        (MLP, "b=256"): Made("failed", "not done in 150 s"),
    }
    made[MLP, RANGE].cases.append(case(2, 12.0))
    one, two, other = rows_of(MLP, made, estimated)
    assert (two.ranged_us, two.alone_us, two.why) == (12.0, None, "alone: not begun")
    assert (one.size, one.ranged_us, one.alone_us, one.code_us, one.runs_us) == ("b=1", 10.0, 9.0, 20.0, 10.0)
    assert one.of_alone == pytest.approx(0.9)
    assert (other.size, other.alone_us, other.runs_us, other.why) == ("b=256", None, 20.0, "alone: not done in 150 s")
    assert not other.is_slower


def test_the_table_and_what_it_comes_to() -> None:
    rows = [
        Row("mlp", "b=1", 10.0, 9.0, 20.0, True),
        Row("mlp", "b=8", 30.0, 30.0, 20.0, True, right={"range": False}),
        Row("mlp", "b=64", 30.0, None, 20.0, False, "alone: none"),
    ]
    assert geometric([0.9, 1.0]) == pytest.approx(0.9486833)
    [said] = summaries(rows)
    assert "2 sizes compared, of a kernel for the size at least 0.90, 0.95 in the mean; 1 of 2 reach 0.95" in said
    assert "slower than the code at b=8" in said
    lines = table(rows).splitlines()
    assert lines[2].endswith("slower than the code; range is WRONG")
    assert lines[3].split()[:6] == ["mlp", "b=64", "30.0", "-", "20.0", "-"]
    drawn = ElementTree.fromstring(curves(rows, "a < b"))
    circles = [one for one in drawn.iter() if one.tag.endswith("circle")]
    assert len(circles) == 3 + 2 + 3


def test_it_wants_a_gpu(capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(device, "driver_present", lambda: False)
    assert command.main(["gated_mlp"]) == 1
    assert "no GPU" in capsys.readouterr().err
    with pytest.raises(SystemExit):
        command.main(["no_such_program"])


def test_a_program_that_fails_found_nothing(tmp_path: Path) -> None:
    given = command.arguments_of(["--by-estimate", "--patience", "60"])
    made, _ = command.found_one((MLP, "b=8"), tmp_path, "no_such_device", given)
    assert made.status == "failed"
    assert made.module is None
    assert "no_such_device" in made.reason


@pytest.mark.more
def test_by_estimate(tmp_path: Path) -> None:
    command_line = [sys.executable, "-m", "mugraph.research.ranged", "gated_mlp", "--by-estimate", "--sizes", "2"]
    command_line += ["--json", str(tmp_path / "found.json"), "--plot", str(tmp_path / "found.svg")]
    ran = subprocess.run(command_line, capture_output=True, text=True, timeout=400)
    assert ran.returncode == 0, ran.stderr
    found = json.loads((tmp_path / "found.json").read_text())
    assert found["source"] == "estimated"
    assert [row["size"] for row in found["rows"]] == [label(point) for point in MLP.points]
    assert all(row["ranged_us"] and row["code_us"] for row in found["rows"])
    assert sum(row["alone_us"] is not None for row in found["rows"]) == 2
    ElementTree.parse(tmp_path / "found.svg")


def test_a_call_goes_on_where_the_last_one_ended(tmp_path: Path) -> None:
    path = tmp_path / "found.json"
    now = Found("measured", "a GPU", "", "", {}, 8, code="this")
    rows = [Row(MLP.name, "b=1", 10.0, 9.0, 20.0, True), Row(MLP.name, "b=256", 30.0, None, 40.0)]
    path.write_bytes(msgspec.json.encode(msgspec.structs.replace(now, rows=rows)))
    earlier = command.rows_kept(path, now)
    assert [*earlier] == [(MLP.name, "b=1")]  # the other one has no kernel for that size
    made = {(MLP, RANGE): Made("improved", "", "text", "f", [case(1, 99.0), case(256, 31.0)])}
    first, last = command.with_earlier(MLP, made, estimated, earlier)
    assert first == rows[0]
    assert (last.size, last.ranged_us) == ("b=256", 31.0)
    for other in ({"device": "another"}, {"code": "other"}, {"trials": 16}, {"source": "estimated"}):
        assert command.rows_kept(path, msgspec.structs.replace(now, **other)) == {}
    assert command.rows_kept(tmp_path / "none.json", now) == {}
    path.write_text("{")
    assert command.rows_kept(path, now) == {}


def test_what_was_found_is_kept_for_the_same_package_alone(tmp_path: Path) -> None:
    out = tmp_path / "found.json"
    assert command.kept(out) is None
    found = Made("improved", "", "text", "f", [case(1, 10.0)], code=code_digest())
    out.write_bytes(msgspec.json.encode(found))
    assert command.kept(out) == found
    out.write_bytes(msgspec.json.encode(msgspec.structs.replace(found, code="other")))
    assert command.kept(out) is None


def test_to_go_on_takes_a_file(capsys: pytest.CaptureFixture[str]) -> None:
    with pytest.raises(SystemExit):
        command.arguments_of(["--resume"])
    assert "--json" in capsys.readouterr().err
