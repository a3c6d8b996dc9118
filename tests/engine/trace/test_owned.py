"""The names of PyTorch's functions, in a process that has not imported PyTorch."""

from __future__ import annotations

import sys
from pathlib import Path

import pytest
import torch
from mugraph.trace.pytorch import owned
from mugraph.trace.tracer import trace_file

FILE = """\
import torch

torch.one_more = torch.Tensor.one_more = torch.relu

# mugraph: x=f32[4, 8]
def f(x):
    return torch.relu(x) + 1
"""


@pytest.fixture
def unknown(monkeypatch: pytest.MonkeyPatch) -> None:
    """As in such a process."""
    monkeypatch.setattr(owned, "_known", None)
    monkeypatch.delitem(sys.modules, "torch")


def test_they_come_with_a_trace_and_are_pytorchs_own(unknown: None, tmp_path: Path) -> None:
    (tmp_path / "model.py").write_text(FILE)
    assert owned.are_wanted()
    assert trace_file(tmp_path / "model.py").errors == ()
    assert not owned.are_wanted()
    found = owned.names()
    assert "torch" not in sys.modules
    spaces = ("torch", torch), ("torch.nn.functional", torch.nn.functional), ("Tensor", torch.Tensor)
    for owner, space in spaces:
        assert {name for name in dir(space) if callable(getattr(space, name))} <= found[owner]
        assert "one_more" not in found[owner], "which the user's file adds"
    assert "gelu" in found["torch._C._nn"]


@pytest.mark.parametrize("told", [None, b"", b'{"torch": 1}'])
def test_where_nothing_can_be_read_they_are_not_known(unknown: None, tmp_path: Path, told: bytes | None) -> None:
    result = tmp_path / "result.json"
    if told is not None:
        owned.beside(result).write_bytes(told)
    owned.learn(result)
    assert owned.are_wanted()


def test_what_is_told_is_what_is_learnt(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    own = owned.names()
    owned.tell(tmp_path / "result.json")
    monkeypatch.setattr(owned, "_known", None)
    assert not owned.are_wanted(), "PyTorch is imported here"
    owned.learn(tmp_path / "result.json")
    assert owned.names() == own


def test_one_process_tells_another(unknown: None, monkeypatch: pytest.MonkeyPatch) -> None:
    assert owned.known() is None
    owned.take({"torch": frozenset({"relu"})})
    assert not owned.are_wanted()
    assert owned.known() == {"torch": frozenset({"relu"})}
