"""The real engine's processes: where they run, and that they end."""

from __future__ import annotations

import sys
import time
from pathlib import Path

import psutil

from tests.server.support.editor import Editor
from tests.server.support.processes import slack, wait_gone

REPOSITORY = Path(__file__).parents[2]
_SECONDS = 180
_SETTINGS = {"search": {"budget": 1}}


def test_a_command_that_stands_for_ssh_and_a_buffer_that_was_never_saved(tmp_path: Path) -> None:
    """A banner on its output, another working folder, and no file: the text travels."""
    wrapper = tmp_path / "ssh-gpu-box"
    wrapper.write_text(
        f'#!/bin/sh\necho "Welcome to gpu-box"\necho "Last login: today" >&2\ncd /\nexec {sys.executable} "$@"\n'
    )
    wrapper.chmod(0o755)
    root = tmp_path / "workspace"
    root.mkdir()
    settings = {**_SETTINGS, "engine": {"command": [str(wrapper), "-m", "mugraph.worker"]}}
    env = {"MUGRAPH_CACHE_DIR": str(tmp_path / "cache")}
    one = Editor(root, settings=settings, env=env, tcp=True)
    try:
        text = (REPOSITORY / "samples" / "rmsnorm_linear.py").read_text()
        uri = one.open(root / "unsaved.py", "\n\n" + text)
        _settled(one, uri)
        assert one.codes(uri) == ["improved"], one.diagnostics(uri)
        assert not (root / "unsaved.py").exists()
        engine = one.status()["engines"][0]
        assert engine["state"] == "running"
        assert _used_while_idle(one) < 0.01
        line = (one.diagnostics(uri) or [])[0]["range"]["start"]["line"]
        one.choose(uri, line, "Replace")
        assert "unsaved_mugraph" in one.texts[uri]
        family = one.family()
        assert len(family) >= 3
        assert one.quit() == 0
        assert wait_gone(family, 2) == []
    finally:
        one.kill()


def test_the_editor_is_gone_in_the_middle_of_a_search(tmp_path: Path) -> None:
    """Scenarios 1 and 2 with the real engine, and the processes it has started."""
    root = tmp_path / "workspace"
    root.mkdir()
    settings = {"search": {"budget": 120}}
    one = Editor(root, settings=settings, env={"MUGRAPH_CACHE_DIR": str(tmp_path / "cache")})
    try:
        one.open(root / "model.py", (REPOSITORY / "samples" / "llama_block.py").read_text())
        one.until(lambda: one.status().get("regions", {}).get("searching"), _SECONDS, "a search")
        family = one.family()
        assert len(family) >= 3
        began = time.monotonic()
        assert one.process.stdin is not None
        one.process.stdin.close()
        assert wait_gone(family, 2) == []
        assert time.monotonic() - began <= 2
        assert one.garbage == b""
    finally:
        one.kill()


def test_search_and_shutdown_leave_nothing(tmp_path: Path) -> None:
    """Cancelled in the middle, hovered meanwhile, and shut down while it is busy."""
    root = tmp_path / "workspace"
    root.mkdir()
    one = Editor(root, settings={"search": {"budget": 120}}, env={"MUGRAPH_CACHE_DIR": str(tmp_path / "cache")})
    try:
        uri = one.open(root / "model.py", (REPOSITORY / "samples" / "llama_block.py").read_text())
        one.until(lambda: one.status().get("regions", {}).get("searching"), _SECONDS, "a search")
        began = time.monotonic()
        one.command("mugraph.cancel", uri)
        one.until(lambda: one.status().get("searching") == 0, 5, "the end of the search")
        assert time.monotonic() - began <= (0.2 + 0.3) * slack()  # the engine's, and the way there and back
        one.command("mugraph.searchAgain", uri)
        one.until(lambda: one.status().get("regions", {}).get("searching"), _SECONDS, "another search")
        family = one.family()
        began = time.monotonic()
        assert one.quit() == 0
        assert time.monotonic() - began <= 2
        assert wait_gone(family, 1) == []
        assert one.garbage == b""
        assert not [p for p in psutil.process_iter(["cmdline"]) if str(root) in " ".join(p.info["cmdline"] or ())]
    finally:
        one.kill()


def _settled(client: Editor, uri: str) -> None:
    client.until(lambda: _lens_states(client, uri), _SECONDS, "the end of its search")
    client.until(lambda: client.status().get("state") == "idle", _SECONDS, "an idle engine")


def _used_while_idle(client: Editor) -> float:
    """Of one core, by the server, the engine and what they have started."""
    time.sleep(0.5)
    family = client.family()

    def used() -> float:
        return sum(sum(process.cpu_times()[:2]) for process in family)

    before, messages = used(), len(client.notifications) + len(client.asked)
    time.sleep(4)
    assert len(client.notifications) + len(client.asked) == messages
    return (used() - before) / 4


def _lens_states(client: Editor, uri: str) -> bool:
    lenses = client.lenses(uri)
    return bool(lenses) and not any("searching" in title for title in lenses)
