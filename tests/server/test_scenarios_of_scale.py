"""Scenario 15: large files, many files, many changes; and a server with nothing to do."""

from __future__ import annotations

import subprocess
import time
from pathlib import Path

import psutil

from tests.server.conftest import Control, MakeEditor
from tests.server.support.texts import IMPROVED, TWO


def _git(root: Path, *arguments: str) -> None:
    subprocess.run(["git", "-c", "user.name=a", "-c", "user.email=a@b.c", *arguments], cwd=root, check=True)


def _commit(root: Path) -> None:
    _git(root, "add", ".")
    _git(root, "commit", "--quiet", "-m", "models")


def test_15_a_large_file_opens_at_once(editor: MakeEditor, root: Path) -> None:
    client = editor()
    text = IMPROVED + "\n".join(f"value_{n} = {n}" for n in range(100_000))
    began = time.monotonic()
    uri = client.open(root / "large.py", text)
    assert client.lenses(uri) == []
    assert time.monotonic() - began < 2.0
    times: list[float] = []
    for _ in range(20):  # while it is looked at in a process of its own
        began = time.monotonic()
        client.lenses(uri)
        times.append(time.monotonic() - began)
    assert sorted(times)[10] < 0.2
    client.wait_codes(uri, "improved")


def test_15_two_hundred_files_and_a_checkout(editor: MakeEditor, root: Path, control: Control) -> None:
    client = editor()
    paths = [root / f"model_{number}.py" for number in range(200)]
    _git(root, "init", "--quiet", "--initial-branch=two")
    for path in paths:
        path.write_text(TWO)
    _commit(root)
    _git(root, "switch", "--quiet", "--create", "one")
    for number, path in enumerate(paths):
        path.write_text(IMPROVED.replace("def f", f"def f{number}"))
    _commit(root)
    for path in paths:
        client.open(path)
    client.until(lambda: client.status().get("regions") == {"improved": 200}, 60)
    assert len(control.pids()) == 1
    assert control.heard("Search") == 200
    family = client.family()
    assert len(family) == 2
    _git(root, "switch", "--quiet", "two")  # the disk is ahead of the buffers
    assert paths[0].read_text() == TWO
    time.sleep(0.5)
    assert control.heard("Search") == 200
    for path in paths[:50]:  # and the editor reads them again
        client.rewrite(path.as_uri(), TWO)
        client.save(path.as_uri())
    client.until(lambda: client.status().get("regions", {}).get("improved") == 250, 60)
    assert control.heard("Search") == 250
    assert len(client.family()) == 2


def test_15_twenty_thousand_changes_leave_nothing_behind(editor: MakeEditor, root: Path, control: Control) -> None:
    client = editor()
    uri = client.open(root / "model.py", IMPROVED)
    client.wait_codes(uri, "improved")
    server = psutil.Process(client.process.pid)

    def change(count: int) -> int:
        for _ in range(count // 2):
            client.change(uri, (1, 0), (1, 0), "\n")
            client.change(uri, (1, 0), (2, 0), "")
        assert len(client.lenses(uri)) == 1
        return server.memory_info().rss

    before = change(2_000)
    assert change(20_000) - before < 15_000_000
    assert control.heard("Search") == 1


def test_a_write_that_both_see_starts_one_search(editor: MakeEditor, root: Path, control: Control) -> None:
    client = editor()
    path = root / "model.py"
    path.write_text(IMPROVED)
    uri = client.open(path)
    client.wait_codes(uri, "improved")
    client.rewrite(uri, TWO)
    client.save(uri, path)
    client.wait_codes(uri, "improved", "improved")
    time.sleep(1.5)
    assert control.heard("Search") == 2
    other = TWO.replace("silu", "gelu")
    client.rewrite(uri, other)
    path.write_text(other)  # another program writes what the buffer holds
    client.until(lambda: control.heard("Search") == 3)
    client.wait_codes(uri, "improved", "improved")


def test_an_idle_server_says_nothing_and_does_nothing(editor: MakeEditor, root: Path) -> None:
    client = editor()
    uri = client.open(root / "model.py", IMPROVED)
    client.wait_codes(uri, "improved")
    time.sleep(0.5)
    server = psutil.Process(client.process.pid)
    count, before = len(client.notifications) + len(client.asked), sum(server.cpu_times()[:2])
    time.sleep(4)
    assert len(client.notifications) + len(client.asked) == count
    assert sum(server.cpu_times()[:2]) - before < 0.04
