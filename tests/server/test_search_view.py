"""`mugraph/search`: a region's candidates while the search runs and after it, and where its statements are."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from tests.server.conftest import Control, MakeEditor
from tests.server.support.connection import Refused
from tests.server.support.editor import Editor
from tests.server.support.texts import IMPROVED, TWO, UNSHAPED

VIEW = {"commands": ["mugraph.showGraph"]}


def asked(client: Editor, uri: str, key: str) -> Any:
    return client.request("mugraph/search", {"uri": uri, "key": key})


def test_candidates_while_it_searches_and_after(editor: MakeEditor, control: Control, root: Path) -> None:
    control.tell(search_s=0.3, tune_s=1.5)
    client = editor(options=VIEW)
    uri = client.open(root / "model.py", IMPROVED)

    def told(count: int) -> Any:
        answer = client.request("mugraph/search", {"uri": uri, "line": 5})
        return answer if answer is not None and len(answer["candidates"]) == count else None

    running = client.until(lambda: told(2), what="two candidates")
    assert running["state"] == "searching"
    assert running["search"] is None
    assert [(one["estimate_us"], one["measured_us"]) for one in running["candidates"]] == [(12.5, None), (8.5, None)]
    assert running["topologies"] > 0

    client.wait_codes(uri, "improved")
    done = asked(client, uri, running["key"])
    assert done["function"] == "f"
    assert done["state"] == "improved"
    assert [(one["number"], one["estimate_us"], one["measured_us"]) for one in done["candidates"]] == [
        (0, 12.5, None),
        (1, 8.5, 9.1),
    ]
    assert [one["chosen"] for one in done["candidates"]] == [False, True]
    assert done["candidates"][0]["words"].startswith("grid n/64")
    assert done["timing"]["source"] == "measured"
    changes = [n["params"]["uri"] for n in client.notifications if n["method"] == "mugraph/searchChanged"]
    assert set(changes) == {uri}
    assert 3 <= len(changes) <= 12, "once for each change of what is shown, not for each tick"


def test_places_move_with_the_text(editor: MakeEditor, root: Path) -> None:
    client = editor(options=VIEW)
    uri = client.open(root / "model.py", IMPROVED)
    (found,) = client.wait_codes(uri, "improved")
    key = found["data"]["key"]
    place = {"start": {"line": 5, "character": 11}, "end": {"line": 5, "character": 28}}
    assert asked(client, uri, key)["places"] == [place]
    client.change(uri, (0, 0), (0, 0), "# above\n")
    place["start"]["line"] = place["end"]["line"] = 6
    assert asked(client, uri, key)["places"] == [place]
    client.change(uri, (6, 15), (6, 16), "N")
    assert asked(client, uri, key)["places"] == [], "the code is another one"


def test_nothing_is_told_to_who_does_not_show_it(editor: MakeEditor, root: Path) -> None:
    client = editor()
    uri = client.open(root / "model.py", IMPROVED)
    client.wait_codes(uri, "improved")
    assert "mugraph/searchChanged" not in {n["method"] for n in client.notifications}


def test_no_such_region(editor: MakeEditor, root: Path) -> None:
    client = editor(options=VIEW)
    uri = client.open(root / "model.py", UNSHAPED)
    client.wait_codes(uri, "needs-shapes")
    assert asked(client, uri, "other") is None
    assert asked(client, "file:///nowhere.py", "other") is None
    with pytest.raises(Refused):
        client.request("mugraph/search", {"uri": uri, "key": 5})


def test_the_region_at_a_line(editor: MakeEditor, root: Path) -> None:
    client = editor(options=VIEW)
    uri = client.open(root / "model.py", TWO)
    client.wait_codes(uri, "improved", "improved")
    functions = [client.request("mugraph/search", {"uri": uri, "line": line})["function"] for line in (0, 5, 8, 10, 50)]
    assert functions == ["f", "f", "f", "g", "g"]
