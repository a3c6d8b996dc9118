"""Scenarios 1 to 5: the editor is killed, dies, quits or shuts down in the middle of a search."""

from __future__ import annotations

import os
import subprocess
import sys
import time
from pathlib import Path

import psutil
import pytest

from tests.server.conftest import Control, MakeEditor
from tests.server.support.busy import searching
from tests.server.support.connection import Refused
from tests.server.support.processes import wait_gone
from tests.server.support.texts import IMPROVED

_EDITOR_THAT_DIES = """
import sys, time
from pathlib import Path
from tests.server.support.editor import Editor
root, command = Path(sys.argv[1]), sys.argv[2:]
client = Editor(root, settings={"engine": {"command": command}})
client.open(root / "model.py")
client.until(lambda: client.status().get("regions", {}).get("searching"), 20)
print(client.process.pid, flush=True)
time.sleep(600)
"""


@pytest.mark.parametrize("children", [["group"], ["group", "own"]], ids=["1", "2-grandchildren"])
def test_1_2_and_5_the_editor_is_killed(root: Path, control: Control, tmp_path: Path, children: list[str]) -> None:
    """Scenario 5, an editor that quits without a word, is the same to the server: its input ends."""
    control.tell(search_s=600, children=children)
    (root / "model.py").write_text(IMPROVED)
    dies = subprocess.Popen(
        [sys.executable, "-c", _EDITOR_THAT_DIES, str(root), *control.command],
        stdout=subprocess.PIPE,
        env=os.environ | {"MUGRAPH_CACHE_DIR": str(tmp_path / "cache")},
        cwd=Path(__file__).parents[2],
    )
    assert dies.stdout is not None
    server = psutil.Process(int(dies.stdout.readline()))
    left = [server, *control.processes()]
    assert len(left) == 2 + len(children)
    dies.kill()
    try:
        assert wait_gone(left, 2) == []
    finally:
        dies.wait()
        for process in left:
            if process.is_running():
                process.kill()


def test_1_the_editor_dies_while_its_pipe_is_held_open(editor: MakeEditor, root: Path, control: Control) -> None:
    """And the engine takes no notice of anything."""
    control.tell(ignore_exit=True, children=["own"])
    parent = subprocess.Popen([sys.executable, "-c", "input()"], stdin=subprocess.PIPE)
    client = editor(process_id=parent.pid)
    searching(client, root, control)
    left = [psutil.Process(client.process.pid), *control.processes()]
    parent.kill()
    parent.wait()
    assert wait_gone(left, 2) == []
    assert client.process.wait(1) == 1


@pytest.mark.parametrize("stubborn", [False, True])
def test_3_and_4_shutdown_while_busy(editor: MakeEditor, root: Path, control: Control, stubborn: bool) -> None:
    control.tell(edit_s=600, ignore_exit=stubborn)
    client = editor()
    uri = client.open(root / "other.py", IMPROVED)
    client.wait_codes(uri, "improved")
    searching(client, root, control)
    key = (client.diagnostics(uri) or [])[0]["data"]["key"]
    command = {"command": "mugraph.apply", "arguments": [uri, [key]]}
    flight = client.begin("workspace/executeCommand", command)
    action = next(a for a in client.actions(uri, 5) if a["title"].startswith("Replace"))
    resolving = client.begin("codeAction/resolve", action)
    client.until(lambda: control.heard("PrepareEdit") == 2)
    began = time.monotonic()
    assert client.quit() == 0
    assert time.monotonic() - began <= 2
    assert client.answer(flight) is None
    with pytest.raises(Refused) as refused:
        client.answer(resolving)
    assert refused.value.code == -32800
    assert len(client.stderr) < 100_000


def test_3_sigterm_ends_it_too(editor: MakeEditor, root: Path, control: Control) -> None:
    client = editor()
    searching(client, root, control)
    left = [psutil.Process(client.process.pid), *control.processes()]
    client.process.terminate()
    assert wait_gone(left, 2) == []
