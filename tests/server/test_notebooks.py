"""Notebooks: the cells are one module for the engine, and documents of their own for the editor."""

from __future__ import annotations

from pathlib import Path
from typing import Any

from mugraph.protocol import messages as m
from mugraph.protocol import values as v
from mugraph_server.documents.source import Document, Source
from mugraph_server.documents.text import Text
from mugraph_server.edits import workspace_edit
from pygls.protocol import default_converter

from tests.server.conftest import Control, MakeEditor
from tests.server.support.editor import Editor
from tests.server.support.edits import applied

_IMPORTS = "%matplotlib inline\nimport torch"
_FIRST = "# mugraph: x=f16[16, 4096]\ndef f(x):\n    return torch.relu(x) @ x"
_SECOND = "!pip install nothing\n# mugraph: x=f16[8, 64]\ndef g(x):\n    return torch.silu(x) @ x\n"

LENS = "1.80× as it runs, 1.10× torch.compile, measured, verified: replace with the Triton kernel"


def _open(client: Editor, path: Path, cells: list[tuple[str, str]]) -> list[str]:
    """cells: language and text. Their uris."""
    uris = [f"vscode-notebook-cell:{path}#{number}" for number in range(len(cells))]
    documents: list[Any] = []
    for uri, (language, text) in zip(uris, cells, strict=True):
        client.texts[uri], client.versions[uri] = text, 1
        documents.append({"uri": uri, "languageId": language, "version": 1, "text": text})
    kinds = [2 if language != "markdown" else 1 for language, _ in cells]
    notebook = {
        "uri": path.as_uri(),
        "notebookType": "jupyter-notebook",
        "version": 1,
        "cells": [{"kind": kind, "document": uri} for kind, uri in zip(kinds, uris, strict=True)],
    }
    client.notify("notebookDocument/didOpen", {"notebookDocument": notebook, "cellTextDocuments": documents})
    return uris


def _edit(client: Editor, path: Path, uri: str, text: str) -> None:
    client.texts[uri] = text
    client.versions[uri] += 1
    content = {"document": {"uri": uri, "version": client.versions[uri]}, "changes": [{"text": text}]}
    client.notify(
        "notebookDocument/didChange",
        {"notebookDocument": {"uri": path.as_uri(), "version": 2}, "change": {"cells": {"textContent": [content]}}},
    )


def test_cells_are_searched_as_one_and_shown_each(editor: MakeEditor, root: Path, control: Control) -> None:
    client = editor()
    assert client.capabilities_of_server["notebookDocumentSync"]["notebookSelector"]
    path = root / "notebook.ipynb"
    cells = [("python", _IMPORTS), ("markdown", "# Words"), ("python", _FIRST), ("python", _SECOND)]
    imports, words, first, second = _open(client, path, cells)
    (found,) = client.wait_codes(first, "improved")
    assert found["range"]["start"] == {"line": 2, "character": 11}
    (found,) = client.wait_codes(second, "improved")
    assert found["range"]["start"] == {"line": 3, "character": 11}
    assert client.diagnostics(imports) is None
    assert client.lenses(first) == [
        "1.80× as it runs, 1.10× torch.compile, measured, verified: replace with the Triton kernel"
    ]
    assert client.lenses(words) == []
    assert "kernel graph" in (client.hover(second, 3, 14) or "")
    assert control.heard("Search") == 1

    client.choose(second, 3, "Replace with generated")
    assert client.texts[imports].startswith("import notebook_mugraph as _mugraph\n%matplotlib")
    assert client.texts[second].endswith("    return _mugraph.g_fits() or torch.silu(x) @ x\n")
    assert client.texts[first] == _FIRST


def test_cells_come_go_and_move(editor: MakeEditor, root: Path) -> None:
    client = editor()
    path = root / "notebook.ipynb"
    _, first = _open(client, path, [("python", _IMPORTS), ("python", _FIRST)])
    client.wait_codes(first, "improved")
    new = f"vscode-notebook-cell:{path}#new"
    client.texts[new], client.versions[new] = "# only words\n\n", 1
    item = {"uri": new, "languageId": "python", "version": 1, "text": client.texts[new]}
    array = {"start": 1, "deleteCount": 0, "cells": [{"kind": 2, "document": new}]}
    structure = {"array": array, "didOpen": [item]}
    change = {"cells": {"structure": structure}}
    notebook = {"uri": path.as_uri(), "version": 2}
    client.notify("notebookDocument/didChange", {"notebookDocument": notebook, "change": change})
    assert "kernel graph" in (client.hover(first, 2, 14) or "")
    structure = {"array": {"start": 2, "deleteCount": 1}, "didClose": [{"uri": first}]}
    change = {"cells": {"structure": structure}}
    client.notify("notebookDocument/didChange", {"notebookDocument": notebook, "change": change})
    client.wait_codes(first)
    assert client.lenses(first) == []


def test_an_edited_cell_is_searched_after_a_pause(editor: MakeEditor, root: Path, control: Control) -> None:
    client = editor()
    path = root / "notebook.ipynb"
    _, first = _open(client, path, [("python", _IMPORTS), ("python", _FIRST)])
    client.wait_codes(first, "improved")
    _edit(client, path, first, _FIRST.replace("relu", "silu"))
    assert "verified" not in str(client.lenses(first))
    client.until(lambda: control.heard("Search") == 2)
    client.wait_codes(first, "improved")
    client.notify(
        "notebookDocument/didClose",
        {"notebookDocument": {"uri": path.as_uri()}, "cellTextDocuments": [{"uri": first}]},
    )
    client.wait_codes(first)


def test_what_cannot_be_traced_says_so(editor: MakeEditor, root: Path, control: Control) -> None:
    control.tell(errors=["the notebook's first cell raised: No module named 'data'"])
    client = editor()
    imports, _ = _open(client, root / "notebook.ipynb", [("python", _IMPORTS), ("python", _FIRST)])
    (found,) = client.wait_codes(imports, "file")
    assert "No module named 'data'" in found["message"]


def test_magics_are_comments_where_they_stand() -> None:
    cells = ["%time x\ny = 1", "a = (b\n%c)", "%%bash\nrm -r nothing", "  !ls\nprint(1)"]
    documents = [Document(str(number), 1, Text(text)) for number, text in enumerate(cells)]
    source = Source("n", "/n.py", "notebook", documents)
    assert source.text == "#time x\ny = 1\na = (b\n%c)\n#%bash\n#m -r nothing\n  #ls\nprint(1)\n"
    assert [source.first_line(document) for document in documents] == [0, 2, 4, 6]


def test_edits_fall_into_the_cells_they_belong_to() -> None:
    """Of whole lines of the joined text, as the engine makes them: any line of any cell."""
    texts = ["a\nb", "c\n", "", "d"]
    for number in range(5):
        documents = [Document(str(index), 1, Text(text)) for index, text in enumerate(texts)]
        source = Source("n", "/n.py", "notebook", documents)
        lines = source.text.splitlines(keepends=True)
        if number >= len(lines):
            break
        place = v.Range(v.Position(number, 0), v.Position(number + 1, 0))
        new = f"{lines[number].strip()}.\nnew\nmore\n"
        edit = m.Edit(1, "n", 1, [v.TextEdit(place, new)], "")
        (change,) = workspace_edit(source, edit, lambda _: 1).document_changes or [None]
        made = default_converter().unstructure(change)
        document = next(one for one in documents if one.uri == made["textDocument"]["uri"])
        document.text.assign(applied(str(document.text), made["edits"]))
        source.touch()
        expected = lines.copy()
        expected[number] = new
        assert source.text == "".join(expected), number
