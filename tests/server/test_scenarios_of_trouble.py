"""Scenarios 13 and 14: engines that die, make noise, are not there, change, or do not fit."""

from __future__ import annotations

import sys
import time
from pathlib import Path

import pytest

from tests.server.conftest import Control, MakeEditor
from tests.server.support.busy import searching
from tests.server.support.processes import wait_gone
from tests.server.support.texts import IMPROVED


@pytest.mark.parametrize("what", ["crash", "oom", "cuda"])
def test_13_an_engine_that_dies_once_is_started_again(
    editor: MakeEditor, root: Path, control: Control, what: str
) -> None:
    control.tell(on_search=what, once=True)
    client = editor()
    uri = client.open(root / "model.py", IMPROVED)
    client.wait_codes(uri, "improved")
    (engine,) = client.status()["engines"]
    assert engine["restarts"] == 1
    (crash,) = client.report()["engines"][0]["crashes"]
    assert {"crash": "status 3", "oom": "memory", "cuda": "CUDA error"}[what] in crash
    assert client.shown() == []


def test_13_an_engine_that_always_dies_over_one_file(editor: MakeEditor, root: Path, control: Control) -> None:
    """It is not tried for ever, and the next file has its turn."""
    control.tell(on_search="crash")
    client = editor()
    uri = client.open(root / "model.py", IMPROVED)
    client.until(lambda: client.status().get("searching") == 0 and control.heard("Search") == 2)
    assert "2 times over this file" in str(client.until(lambda: client.diagnostics(uri)))
    control.tell()
    other = client.open(root / "other.py", IMPROVED)
    client.wait_codes(other, "improved")


def test_13_the_breaker_opens_and_restart_closes_it(editor: MakeEditor, root: Path, control: Control) -> None:
    control.tell(on_hello="crash")
    client = editor()
    uri = client.open(root / "model.py", IMPROVED)
    status = client.wait_state("errored")
    assert "ended 5 times" in status["message"]
    assert len(control.pids()) == 5
    assert len(client.shown()) == 1
    time.sleep(0.5)
    assert len(control.pids()) == 5
    control.tell()
    client.command("mugraph.restart")
    client.wait_codes(uri, "improved")
    client.wait_state("idle")


@pytest.mark.parametrize("what", ["bad-json", "print", "garbage", "stderr"])
def test_13_noise_does_no_harm(editor: MakeEditor, root: Path, control: Control, what: str) -> None:
    control.tell(on_hello=what, on_search=what)
    client = editor()
    uri = client.open(root / "model.py", IMPROVED)
    client.wait_codes(uri, "improved")
    assert client.status()["engines"][0]["restarts"] == 0
    assert len(client.stderr) < 100_000


def test_14_an_interpreter_that_is_not_there(editor: MakeEditor, root: Path, control: Control) -> None:
    python = str(root / "gone" / "bin" / "python")
    client = editor(settings={"engine": {"command": []}, "interpreter": python})
    uri = client.open(root / "model.py", IMPROVED)
    client.open(root / "other.py", IMPROVED)
    status = client.wait_state("errored")
    assert python in status["message"]
    (message,) = client.shown()
    assert python in message
    assert "does not exist" in message
    assert client.hover(uri, 5, 14) is None
    client.settings = {"engine": {"command": control.command}}
    client.notify("workspace/didChangeConfiguration", {"settings": {"mugraph": client.settings}})
    client.wait_codes(uri, "improved")


def test_14_an_interpreter_deleted_while_it_runs(editor: MakeEditor, root: Path, control: Control) -> None:
    wrapper = root / "engine.sh"
    wrapper.write_text(f'#!/bin/sh\nexec {" ".join(control.command)} "$@"\n')
    wrapper.chmod(0o755)
    client = editor(settings={"engine": {"command": str(wrapper)}})
    uri = client.open(root / "model.py", IMPROVED)
    client.wait_codes(uri, "improved")
    wrapper.unlink()
    for engine in control.processes():
        engine.kill()
    status = client.wait_state("errored")
    assert str(wrapper) in status["message"]
    assert len(client.shown()) == 1
    assert "verified" in (client.hover(uri, 5, 14) or "")
    assert client.process.poll() is None


def test_14_another_interpreter_in_the_middle_of_a_search(
    editor: MakeEditor, root: Path, control: Control, tmp_path: Path
) -> None:
    client = editor()
    uri = client.open(root / "other.py", IMPROVED)
    client.wait_codes(uri, "improved")
    busy = searching(client, root, control)
    before = control.processes()
    (tmp_path / "another").mkdir()
    another = Control(tmp_path / "another")
    client.settings = {"engine": {"command": another.command}}
    client.notify("workspace/didChangeConfiguration", {"settings": {"mugraph": client.settings}})
    client.wait_codes(busy, "improved")
    client.wait_codes(uri, "improved")
    assert wait_gone(before, 2) == []
    assert "kernel graph" in (client.hover(uri, 5, 14) or "")
    assert len(another.pids()) == 1
    assert len(client.family()) == 2
    assert client.shown() == []


@pytest.mark.parametrize("later", [False, True], ids=["from the start", "once it was searched"])
def test_14_a_torch_that_does_not_fit(editor: MakeEditor, root: Path, control: Control, later: bool) -> None:
    problems = ["torch 1.13 is too old: mugraph needs 2.11 or later"]
    control.tell(problems=[] if later else problems)
    client = editor()
    uri = client.open(root / "model.py", IMPROVED)
    if later:
        client.wait_codes(uri, "improved")
        control.tell(problems=problems)
        control.processes()[0].kill()
    status = client.wait_state("errored")
    assert sys.executable in status["message"]
    assert "torch 1.13" in status["message"]
    assert client.shown() == [f"mugraph: {status['message']}"]
    assert len(control.pids()) == 1 + later
    assert ("verified" in (client.hover(uri, 5, 14) or "")) == later
