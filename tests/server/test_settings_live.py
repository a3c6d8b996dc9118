"""Settings as an editor has them: asked for, per folder, changed without a restart, wrong ones named."""

from __future__ import annotations

import time
from pathlib import Path
from typing import Any

from tests.server.conftest import Control, MakeEditor
from tests.server.support.editor import FULL, Editor
from tests.server.support.texts import IMPROVED

_ASKED = {
    **FULL,
    "workspace": {
        **FULL["workspace"],
        "configuration": True,
        "didChangeConfiguration": {"dynamicRegistration": True},
        "workspaceFolders": True,
    },
}


def _set(client: Editor, **settings: Any) -> None:
    client.settings = {"engine": client.settings["engine"], **settings}
    client.notify("workspace/didChangeConfiguration", {"settings": {"mugraph": client.settings}})


def test_views_are_switched_off_and_on(editor: MakeEditor, root: Path) -> None:
    client = editor()
    uri = client.open(root / "model.py", IMPROVED)
    client.wait_codes(uri, "improved")
    _set(client, views={"diagnostics": False, "codeLens": False, "hover": False, "inlayHints": False})
    client.wait_codes(uri)
    assert client.lenses(uri) == []
    assert client.hover(uri, 5, 14) is None
    _set(client)
    client.wait_codes(uri, "improved")
    assert len(client.lenses(uri)) == 1


def test_switched_off_and_on_again(editor: MakeEditor, root: Path, control: Control) -> None:
    client = editor()
    uri = client.open(root / "model.py", IMPROVED)
    client.wait_codes(uri, "improved")
    _set(client, enable=False)
    client.wait_state("disabled")
    client.wait_codes(uri)
    client.until(lambda: control.processes() == [] or all(not p.is_running() for p in control.processes()))
    client.save(uri)
    _set(client)
    client.wait_codes(uri, "improved")


def test_a_wrong_value_is_named_once(editor: MakeEditor, root: Path) -> None:
    client = editor(settings={"search": {"budget": "long"}})
    uri = client.open(root / "model.py", IMPROVED)
    client.wait_codes(uri, "improved")
    (message,) = client.shown()
    assert message.startswith("mugraph: mugraph.search.budget: must be a number of seconds")
    _set(client, search={"budget": "long", "when": "never"})
    client.until(lambda: len(client.shown()) == 2)
    assert "search.when" in client.shown()[1]


def test_the_engine_hears_of_its_settings(editor: MakeEditor, root: Path, control: Control) -> None:
    client = editor(settings={"search": {"budget": 3}})
    uri = client.open(root / "model.py", IMPROVED)
    client.wait_codes(uri, "improved")
    engine = client.report()["engines"][0]
    assert engine["report"]["settings"]["budget_s"] == 3
    _set(client, search={"budget": 4, "measure": False, "kernels": 2, "operators": 9}, target="h200")
    client.until(lambda: control.heard("Configure") == 1)
    settings = client.report()["engines"][0]["report"]["settings"]
    assert (settings["budget_s"], settings["measure"], settings["target"]) == (4, False, "h200")
    assert (settings["max_kernels"], settings["max_ops"]) == (2, 9)
    client.until(lambda: control.heard("Search") == 2, what="a search for the other target")


def test_when_to_search(editor: MakeEditor, root: Path, control: Control) -> None:
    client = editor(settings={"search": {"when": "save"}})
    uri = client.open(root / "model.py", IMPROVED)
    client.until(lambda: client.lenses(uri) == ["not searched yet: search"])
    assert control.heard("Search") == 0
    assert control.heard("Find") == 1
    client.save(uri)
    client.wait_codes(uri, "improved")
    _set(client, search={"when": "demand"})
    client.rewrite(uri, IMPROVED.replace("relu", "silu"))
    client.save(uri)
    time.sleep(1)
    assert control.heard("Search") == 1
    client.command("mugraph.searchAgain", uri)
    client.wait_codes(uri, "improved")
    assert control.heard("Search") == 2


def test_each_folder_has_its_engine_in_its_environment(editor: MakeEditor, tmp_path: Path, control: Control) -> None:
    """Asked for by folder; an engine of another folder is left alone when one changes."""
    one, two = tmp_path / "one", tmp_path / "two"
    (tmp_path / "other").mkdir()
    other = Control(tmp_path / "other")

    class Two(Editor):
        """With an answer for each scope."""

        def answer_configuration(self, items: list[Any]) -> list[Any]:
            found: list[Any] = []
            for item in items:
                mine = str(item.get("scopeUri")).endswith("two")
                found.append({"engine": {"command": other.command}} if mine else self.settings)
            return found

    for folder in (one, two):
        folder.mkdir()
    client = editor(root=one, capabilities=_ASKED, kind=Two)
    folders = {"added": [{"uri": two.as_uri(), "name": "two"}], "removed": []}
    client.notify("workspace/didChangeWorkspaceFolders", {"event": folders})
    client.until(lambda: sum(a["method"] == "workspace/configuration" for a in client.asked) == 2)
    first, second = client.open(one / "a.py", IMPROVED), client.open(two / "b.py", IMPROVED)
    client.wait_codes(first, "improved")
    client.wait_codes(second, "improved")
    assert control.heard("Search") == other.heard("Search") == 1
    assert {engine["root"] for engine in client.status()["engines"]} == {str(one), str(two)}
    assert any(asked["method"] == "client/registerCapability" for asked in client.asked)

    pids = other.pids()
    client.settings = {"engine": {"command": [*control.command, "again"]}}
    client.notify("workspace/didChangeConfiguration", {"settings": None})
    client.until(lambda: control.heard("Search") == 2, what="a search by the new engine")
    client.wait_codes(first, "improved")
    assert other.pids() == pids
    assert len(client.family()) == 3
    client.notify(
        "workspace/didChangeWorkspaceFolders",
        {"event": {"added": [], "removed": [{"uri": two.as_uri(), "name": "two"}]}},
    )
    client.until(lambda: len(client.family()) == 2, what="the end of its engine")
    assert other.heard("Exit") == 1
    other.tell()
    assert other.processes() == [] or all(not process.is_running() for process in other.processes())


def test_restart_keeps_what_is_shown_until_there_is_news(editor: MakeEditor, root: Path, control: Control) -> None:
    client = editor()
    uri = client.open(root / "model.py", IMPROVED)
    client.wait_codes(uri, "improved")
    control.tell(on_hello="silent")
    client.begin("workspace/executeCommand", {"command": "mugraph.restart", "arguments": []})
    client.wait_state("starting")
    assert "1.80×" in str(client.lenses(uri))
    assert "1.80×" in (client.hover(uri, 5, 14) or "")
    control.tell()
    client.command("mugraph.restart")
    client.wait_codes(uri, "improved")
    client.choose(uri, 5, "Replace with generated")  # the new engine knows what the old one found
    assert "_mugraph.f_fits()" in client.texts[uri]


def test_an_engine_that_died_after_its_work_is_asked_again_before_an_edit(
    editor: MakeEditor, root: Path, control: Control
) -> None:
    client = editor()
    uri = client.open(root / "model.py", IMPROVED)
    client.wait_codes(uri, "improved")
    control.processes()[0].kill()
    client.until(lambda: client.status()["engines"][0]["restarts"] == 1)
    client.wait_state("idle")
    client.choose(uri, 5, "Replace with generated")
    assert "_mugraph.f_fits()" in client.texts[uri]
    assert control.heard("searching f") == 1
