"""What the watcher cannot read or count is said."""

from __future__ import annotations

import ast
from pathlib import Path

import pytest
from mugraph.recording.inside.mugraph_watcher.counts import MOST, NO_ROOM, SIZE, Counts, read
from mugraph.recording.inside.mugraph_watcher.guards import Guards
from mugraph.recording.inside.mugraph_watcher.sentences import sentence


def test_calls_for_which_there_is_no_room(tmp_path: Path):
    counts = Counts(str(tmp_path))
    regions = SIZE // 8 // MOST + 1
    for region in range(regions):
        for reason in range(MOST):
            counts.add(("a.py", f"r{region}", f"reason {reason}", None))
    found = read(tmp_path)
    assert sum(found.values()) == regions * MOST, "every call is in some count"
    assert found[NO_ROOM] == regions * MOST - (SIZE // 8 - 1)


def test_without_need_nothing_is_uncounted(tmp_path: Path):
    counts = Counts(str(tmp_path))
    counts.add(("a.py", "r", None, None))
    assert read(tmp_path) == {("a.py", "r", None, None): 1}


def test_a_folder_that_cannot_be_written(tmp_path: Path, capsys: pytest.CaptureFixture[str]):
    (tmp_path / "file").write_text("")
    for name, said in (("gone", ""), ("file", "mugraph: calls cannot be counted (Not a directory)\n")):
        counts = Counts(str(tmp_path / name))
        counts.add(("a.py", "r", None, None))
        counts.add(("a.py", "r", None, None))
        assert capsys.readouterr().err == said


KERNELS = """\
def f_fits(x):
    return any([x.other and x.one])
"""


def test_a_value_that_cannot_be_read():
    class Input:
        other = False

        @property
        def one(self) -> bool:
            raise KeyError

    guards = Guards("kernels.py", ast.parse(KERNELS))
    refusal = guards.refusal("f_fits", {}, (Input(),))
    assert refusal is not None
    assert sentence(refusal) == "any([x.other and x.one]) is False (x.one cannot be read: KeyError)"
