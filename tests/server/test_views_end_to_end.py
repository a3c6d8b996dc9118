"""From didOpen to what a person sees and does, with an engine that does as it is told."""

from __future__ import annotations

import base64
import re
from pathlib import Path

import pytest

from tests.server.conftest import Control, MakeEditor
from tests.server.support.connection import Refused
from tests.server.support.editor import FULL, MARKDOWN_WITH_IMAGES
from tests.server.support.texts import IMPROVED, TWO, UNSHAPED

GAIN = "1.80× as it runs, 1.10× torch.compile"


@pytest.mark.parametrize("tcp", [False, True], ids=["stdio", "tcp"])
def test_from_open_to_applied_and_back(editor: MakeEditor, root: Path, tcp: bool) -> None:
    path = root / "model.py"
    path.write_text(IMPROVED)
    client = editor(tcp=tcp)
    uri = client.open(path)
    (found,) = client.wait_codes(uri, "improved")
    assert found["message"] == (
        "1.80× as it runs, 1.10× torch.compile, on Fake H200, verified;"
        " measured 9.1 µs against 16.4, as called 52.0 µs against 90.0"
    )
    assert found["severity"] == 4
    assert found["range"] == {"start": {"line": 5, "character": 11}, "end": {"line": 5, "character": 28}}
    assert len(found["relatedInformation"]) == 1

    assert client.lenses(uri) == [f"{GAIN}, measured, verified: replace with the Triton kernel"]
    hints = client.request(
        "textDocument/inlayHint",
        {
            "textDocument": {"uri": uri},
            "range": {"start": {"line": 0, "character": 0}, "end": {"line": 9, "character": 0}},
        },
    )
    assert [(hint["position"]["line"], hint["label"]) for hint in hints] == [(5, f"{GAIN} with mugraph")]
    text = client.hover(uri, 5, 14)
    assert text is not None
    assert "kernel graph" in text
    assert "equal over two finite fields" in text

    titles = [action["title"] for action in client.actions(uri, 5)]
    assert titles == [f"Replace with generated Triton kernel ({GAIN})", "Search again"]
    action = client.choose(uri, 5, "Replace with generated")
    kinds = [change.get("kind") for change in action["edit"]["documentChanges"]]
    assert kinds == ["create", None, None]
    assert action["edit"]["documentChanges"][-1]["textDocument"]["version"] == 1
    module = root / "model_mugraph.py"
    assert "written by mugraph" in module.read_text()
    assert client.texts[uri].startswith("import model_mugraph as _mugraph\n")

    client.save(uri, path)
    (found,) = client.wait_codes(uri, "applied")
    client.choose(uri, 6, "Revert to PyTorch")
    assert client.texts[uri] == IMPROVED
    assert not module.exists()
    client.save(uri, path)
    client.wait_codes(uri, "improved")


def test_a_region_that_is_faster_at_some_sizes_says_at_which(editor: MakeEditor, root: Path) -> None:
    client = editor()
    uri = client.open(root / "model.py", IMPROVED.replace("@ x", "@ ranged"))
    (found,) = client.wait_codes(uri, "improved")
    gain = "1.80× to 3.00× on the device"
    assert found["message"] == (
        f"{gain} for b up to 16, on Fake H200, verified; measured 9.1 µs against 16.4 at b = 16"
    )
    assert client.lenses(uri) == [f"{gain} for b up to 16, measured, verified: replace with the Triton kernel"]
    assert f"Replace with generated Triton kernel ({gain} for b up to 16)" in [
        action["title"] for action in client.actions(uri, 5)
    ]
    text = client.hover(uri, 5, 14)
    assert text is not None
    for row in (
        "| b | eager | torch.compile | kernel | runs |",
        "| 1 | 15.0 | 15.0 | 5.0 | the kernel, 3.00× on the device |",
        "| 64 | 20.0 | 24.0 | 22.0 | your own code |",
        "µs, measured on Fake H200",
    ):
        assert row in text


def test_every_region_at_once(editor: MakeEditor, root: Path) -> None:
    client = editor()
    uri = client.open(root / "model.py", TWO)
    client.wait_codes(uri, "improved", "improved")
    client.choose(uri, 5, "Replace all 2 regions")
    assert client.texts[uri].count("_mugraph.") == 2


def test_a_picture_only_where_images_render(editor: MakeEditor, root: Path) -> None:
    images = {**FULL, "general": {**FULL["general"], "markdown": MARKDOWN_WITH_IMAGES}}
    client = editor(capabilities=images, options={"theme": "dark", "commands": ["mugraph.showGraph"]})
    uri = client.open(root / "model.py", IMPROVED)
    client.wait_codes(uri, "improved")
    text = client.hover(uri, 5, 14)
    assert text is not None
    assert "](data:image/svg+xml;base64," in text
    assert "|width=472)" in text
    assert "[full graph](command:mugraph.showGraph?" in text
    assert "showKernel" not in text
    (data,) = re.findall(r"base64,([A-Za-z0-9+/=]+)", text)
    assert b"<!-- dark -->" in base64.b64decode(data)
    client.notify("mugraph/theme", {"theme": "light"})
    text = client.hover(uri, 5, 14)
    assert text is not None
    (data,) = re.findall(r"base64,([A-Za-z0-9+/=]+)", text)
    assert b"<!-- light -->" in base64.b64decode(data)


def test_pictures_are_drawn_in_a_new_theme_before_they_are_asked_for(
    editor: MakeEditor, root: Path, control: Control
) -> None:
    images = {**FULL, "general": {**FULL["general"], "markdown": MARKDOWN_WITH_IMAGES}}
    client = editor(capabilities=images, options={"theme": "dark"})
    uri = client.open(root / "model.py", IMPROVED)
    client.wait_codes(uri, "improved")
    client.until(lambda: control.heard("Draw") == 1)
    client.notify("mugraph/theme", {"theme": "light"})
    client.until(lambda: control.heard("Draw") == 2)
    client.notify("mugraph/theme", {"theme": "dark"})
    assert client.hover(uri, 5, 14) is not None
    assert control.heard("Draw") == 2, "the dark one was kept"


def test_pulled_diagnostics_are_not_pushed_and_keep_their_identity(editor: MakeEditor, root: Path) -> None:
    document = {**FULL["textDocument"], "diagnostic": {"relatedDocumentSupport": True}}
    workspace = {**FULL["workspace"], "diagnostics": {"refreshSupport": True}}
    client = editor(capabilities={**FULL, "textDocument": document, "workspace": workspace})
    assert client.capabilities_of_server["diagnosticProvider"]["identifier"] == "mugraph"
    uri = client.open(root / "model.py", IMPROVED)
    client.wait_state("idle")
    client.until(lambda: any(one["method"] == "workspace/diagnostic/refresh" for one in client.asked))
    asked = {"textDocument": {"uri": uri}}
    first = client.request("textDocument/diagnostic", asked)
    assert [item["code"] for item in first["items"]] == ["improved"]
    again = client.request("textDocument/diagnostic", {**asked, "previousResultId": first["resultId"]})
    assert again == {"kind": "unchanged", "resultId": first["resultId"]}
    client.change(uri, (5, 11), (5, 16), "jax")
    third = client.request("textDocument/diagnostic", {**asked, "previousResultId": first["resultId"]})
    assert [item["code"] for item in third["items"]] == ["stale"]
    assert "verified" not in str(third["items"])
    assert client.diagnostics(uri) is None


def test_shapes_are_inserted_or_filled_from_a_recording(editor: MakeEditor, root: Path, control: Control) -> None:
    control.tell(recordings=[{"function": "f", "arguments": {"x": "f16[8, 64]"}, "devices": ["cuda"], "calls": 7}])
    client = editor()
    uri = client.open(root / "model.py", UNSHAPED)
    found = client.wait_codes(uri, "needs-shapes")
    client.until(lambda: control.heard("AskRecordings"))
    client.until(lambda: len(client.actions(uri, 3)) == 2)
    fill, insert = client.actions(uri, 3, diagnostics=found)
    assert fill["title"] == "Fill shapes from a recording: x=f16[8, 64]"
    assert fill["diagnostics"] == found
    assert insert["title"] == "Insert shapes"
    client.choose(uri, 3, "Fill shapes")
    assert client.texts[uri].splitlines()[3] == "# mugraph: x=f16[8, 64]"
    client.save(uri)
    client.wait_codes(uri, "improved")


def test_a_kernel_that_no_longer_fits(editor: MakeEditor, root: Path, control: Control) -> None:
    applied = IMPROVED.replace("return ", "return _mugraph.f_fits() or ")
    text = f"import model_mugraph as _mugraph\n{applied}"
    module = root / "model_mugraph.py"
    module.write_text("")
    place = {"start": {"line": 6, "character": 4}, "end": {"line": 6, "character": 40}}
    check = {"state": "stale", "module": str(module), "message": "The code was edited.", "function": "f", "id": "1"}
    control.tell(checks=[{**check, "range": place}])
    client = editor()
    uri = client.open(root / "model.py", text)
    found = client.wait_codes(uri, "applied", "kernel-stale")
    assert found[1]["severity"] == 2
    titles = [action["title"] for action in client.actions(uri, 6, diagnostics=found)]
    assert titles == ["Revert to PyTorch", "Revert to PyTorch and search again"]
    links = client.request("textDocument/documentLink", {"textDocument": {"uri": uri}})
    assert [link["target"] for link in links] == [module.as_uri()]
    client.change(uri, (6, 0), (6, 0), "    # words\n")
    control.tell(checks=[])
    client.wait_codes(uri, "applied")  # looked at again after a pause in typing
    control.tell(checks=[{**check, "range": place}])
    client.change(uri, (6, 0), (7, 0), "")
    client.save(uri)
    client.wait_codes(uri, "applied", "kernel-stale")
    control.tell()
    client.choose(uri, 6, "Revert to PyTorch and search again")
    assert client.texts[uri] == IMPROVED
    client.wait_codes(uri, "improved")


def test_what_the_last_checked_run_made_of_a_kernel(editor: MakeEditor, root: Path, control: Control) -> None:
    text = f"import model_mugraph as _mugraph\n{IMPROVED.replace('return ', 'return _mugraph.f_fits() or ')}"
    module = root / "model_mugraph.py"
    module.write_text("")
    place = {"start": {"line": 6, "character": 4}, "end": {"line": 6, "character": 60}}
    check = {"state": "fits", "module": str(module), "message": "", "function": "f", "id": "1", "range": place}
    runs = "taken 56 of 63 calls in the last check; first refused: x has 16 rows, the kernel is for 2"
    control.tell(checks=[{**check, "runs": runs}])
    client = editor()
    uri = client.open(root / "model.py", text)
    client.wait_codes(uri, "applied")
    client.until(lambda: runs in (client.hover(uri, 6, 30) or ""))
    lenses = client.request("textDocument/codeLens", {"textDocument": {"uri": uri}})
    assert [lens["command"]["tooltip"] for lens in lenses] == [runs]
    client.change(uri, (6, 11), (6, 11), "not ")
    assert runs not in (client.hover(uri, 6, 30) or ""), "the code has changed since"


def test_progress_can_be_cancelled_and_search_goes_on_where_asked(
    editor: MakeEditor, root: Path, control: Control
) -> None:
    control.tell(search_s=30)
    client = editor()
    uri = client.open(root / "model.py", IMPROVED)

    def progress(kind: str) -> object:
        values = [n["params"] for n in client.notifications if n["method"] == "$/progress"]
        return next((value["token"] for value in values if value["value"]["kind"] == kind), None)

    token = client.until(lambda: progress("report"), what="progress")
    assert client.status()["state"] == "searching"
    control.tell()
    client.notify("window/workDoneProgress/cancel", {"token": token})
    client.until(lambda: progress("end"), what="the end of progress")
    client.until(lambda: client.lenses(uri) == ["changed; save to search again"])
    client.command("mugraph.searchAgain", uri)
    client.wait_codes(uri, "improved")


def test_an_edit_is_refused_when_the_text_changes_meanwhile(editor: MakeEditor, root: Path, control: Control) -> None:
    client = editor()
    uri = client.open(root / "model.py", IMPROVED)
    client.wait_codes(uri, "improved")
    control.tell(edit_s=0.5)
    action = next(a for a in client.actions(uri, 5) if a["title"].startswith("Replace"))
    asked = client.begin("codeAction/resolve", action)
    client.until(lambda: control.heard("PrepareEdit"))
    client.change(uri, (0, 0), (0, 0), "\n")
    with pytest.raises(Refused, match="changed meanwhile") as error:
        client.answer(asked)
    assert error.value.code == -32801


def test_clients_without_resolve_or_created_files(editor: MakeEditor, root: Path) -> None:
    """An old client: the server writes the module, and sends an edit that needs no versions."""
    client = editor(capabilities={"workspace": {"applyEdit": True}})
    uri = client.open(root / "model.py", IMPROVED)
    client.wait_codes(uri, "improved")
    client.choose(uri, 5, "Replace with generated")
    assert "written by mugraph" in (root / "model_mugraph.py").read_text()
    assert "_mugraph.f_fits()" in client.texts[uri]


def test_untitled_texts_are_searched_and_say_why_they_cannot_be_applied(editor: MakeEditor) -> None:
    client = editor()
    uri = client.open("untitled:Untitled-1", IMPROVED)
    client.wait_codes(uri, "improved")
    action = next(a for a in client.actions(uri, 5) if a["title"].startswith("Replace"))
    with pytest.raises(Refused, match="save the file first"):
        client.request("codeAction/resolve", action)


def test_workspace_search_and_clear(editor: MakeEditor, root: Path) -> None:
    for name in ("one.py", "two.py"):
        (root / name).write_text(IMPROVED)
    (root / "three.py").write_text("import os\n")
    hidden = root / ".venv"
    hidden.mkdir()
    (hidden / "four.py").write_text(IMPROVED)
    client = editor()
    assert client.command("mugraph.searchWorkspace") == 2
    for name in ("one.py", "two.py"):
        client.wait_codes((root / name).as_uri(), "improved")
    client.command("mugraph.clearResults")
    for name in ("one.py", "two.py"):
        client.wait_codes((root / name).as_uri())


def test_a_cancelled_workspace_search_is_over(editor: MakeEditor, root: Path, control: Control) -> None:
    control.tell(search_s=600)
    for number in range(5):
        (root / f"model_{number}.py").write_text(IMPROVED.replace("def f", f"def f{number}"))
    client = editor()
    client.command("mugraph.searchWorkspace")
    client.until(lambda: client.status().get("regions", {}).get("searching"))
    client.command("mugraph.cancel", (root / "model_0.py").as_uri())
    client.until(lambda: client.status()["searching"] == 0)
    assert control.heard("Search") == 1


def test_library_files_are_left_alone(editor: MakeEditor, root: Path, control: Control) -> None:
    folder = root / "lib" / "site-packages"
    folder.mkdir(parents=True)
    client = editor()
    library = client.open(folder / "functional.py", IMPROVED)
    uri = client.open(root / "model.py", IMPROVED)
    client.wait_codes(uri, "improved")
    assert client.lenses(library) == []
    assert control.heard("Search") == 1


def test_nothing_runs_before_trust(editor: MakeEditor, root: Path, control: Control) -> None:
    client = editor(options={"trusted": False})
    uri = client.open(root / "model.py", IMPROVED)
    assert client.wait_state("untrusted")["engines"] == []
    assert client.hover(uri, 5) is None
    assert control.pids() == []
    client.notify("mugraph/trust", {"trusted": True})
    client.wait_codes(uri, "improved")


def test_the_report_has_no_source_text(editor: MakeEditor, root: Path) -> None:
    client = editor()
    uri = client.open(root / "model.py", IMPROVED)
    client.wait_codes(uri, "improved")
    report = client.report()
    assert report["versions"]["pygls"].startswith("2.")
    assert report["engines"][0]["state"] == "running"
    assert report["engines"][0]["report"]["device"]["name"] == "Fake H200"
    assert report["files"] == {"open": 1, "regions": {"improved": 1}}
    assert "torch.relu" not in str(report)
    log = Path(client.command("mugraph.showLog"))
    assert "engine in workspace: running" in log.read_text()
    assert "torch.relu" not in log.read_text()
    assert any(one["method"] == "window/showDocument" for one in client.asked)


def test_graph_and_preview_for_clients_that_show_them(editor: MakeEditor, root: Path) -> None:
    client = editor(options={"commands": ["mugraph.showChange"]})
    uri = client.open(root / "model.py", IMPROVED)
    (found,) = client.wait_codes(uri, "improved")
    assert "Show the change first" in [action["title"] for action in client.actions(uri, 5)]
    key = found["data"]["key"]
    assert client.request("mugraph/graph", {"uri": uri, "key": key, "theme": "dark"})["svg"].startswith("<svg")
    preview = client.request("mugraph/preview", {"uri": uri, "keys": [key]})
    assert preview["module_path"].endswith("model_mugraph.py")
    assert preview["before"] == IMPROVED
