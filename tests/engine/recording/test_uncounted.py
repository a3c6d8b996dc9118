"""What the watcher cannot read or count is said."""

from __future__ import annotations

import ast
from pathlib import Path
from typing import Any

import pytest
import torch
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


OF_TENSORS = """\
def _again(*tensors):
    for tensor in tensors:
        if _address(tensor) & 15:
            return False
    return True

def f_fits(x, mask):
    return _again(x, mask)
"""


@pytest.mark.parametrize(("mask", "said"), [(None, "None"), (3.0, "a float"), ([torch.ones(2)], "a list")])
def test_what_is_given_in_place_of_a_tensor(mask: object, said: str):
    tree = ast.parse(OF_TENSORS)
    space: dict[str, Any] = {"_address": torch.Tensor.data_ptr}
    exec(compile(tree, "kernels.py", "exec"), space)
    guards = Guards("kernels.py", tree)
    refusal = guards.refusal("f_fits", space, (torch.ones(4), mask), ("query", "key_mask"))
    assert refusal is not None
    assert sentence(refusal) == f"key_mask is {said}, the kernel is for a tensor"


ONE = "def f_fits(x, y):\n    return y is x\n"


@pytest.mark.parametrize(
    ("given", "said"),
    [
        ((torch.ones(2), torch.ones(2)), "keys is another tensor than queries"),
        (([object()], [object()]), "keys is another object than queries"),
        ((torch.ones(2), None), "keys is None, the kernel is for a Tensor"),
    ],
)
def test_two_arguments_that_were_one(given: tuple[object, object], said: str):
    refusal = Guards("kernels.py", ast.parse(ONE)).refusal("f_fits", {}, given, ("queries", "keys"))
    assert refusal is not None
    assert sentence(refusal) == said
