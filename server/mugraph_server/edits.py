"""The engine's edits in the client's form: versioned changes of documents, and files to create and delete with them."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

from lsprotocol import types
from mugraph.protocol.messages import Edit
from pygls.uris import from_fs_path

from mugraph_server.documents.marks import key
from mugraph_server.documents.source import Document, Source
from mugraph_server.region_marks import to_range

TextChange = types.TextEdit | types.AnnotatedTextEdit | types.SnippetTextEdit
Change = types.TextDocumentEdit | types.CreateFile | types.RenameFile | types.DeleteFile


class CannotEdit(Exception):
    """One sentence for the user."""


def workspace_edit(source: Source, edit: Edit, version_of: Callable[[Document], int]) -> types.WorkspaceEdit:
    """New files first: an editor that cannot create one then changes nothing at all. Raises CannotEdit.

    version_of: a document's version when the edit was asked for
    """
    changes: list[Change] = []
    for path, text in edit.create.items():
        uri = _uri(path)
        changes.append(types.CreateFile(uri, options=types.CreateFileOptions(ignore_if_exists=False)))
        start = types.Range(types.Position(0, 0), types.Position(0, 0))
        unversioned = types.OptionalVersionedTextDocumentIdentifier(uri)
        changes.append(types.TextDocumentEdit(unversioned, [types.TextEdit(start, text)]))
    for document, edits in _by_document(source, edit):
        versioned = types.OptionalVersionedTextDocumentIdentifier(document.uri, version_of(document))
        changes.append(types.TextDocumentEdit(versioned, edits))
    for path in edit.delete:
        options = types.DeleteFileOptions(ignore_if_not_exists=True)
        changes.append(types.DeleteFile(_uri(path), options=options))
    return types.WorkspaceEdit(document_changes=changes)


def without_files(edit: types.WorkspaceEdit) -> types.WorkspaceEdit:
    """The edit for a client that cannot create or delete files: only changes of texts."""
    changes = edit.document_changes or []
    kept = [c for c in changes if isinstance(c, types.TextDocumentEdit) and c.text_document.version is not None]
    return types.WorkspaceEdit(document_changes=kept)


def without_versions(edit: types.WorkspaceEdit) -> types.WorkspaceEdit:
    """The edit for a client that has no versioned changes."""
    changes = {
        change.text_document.uri: [e for e in change.edits if isinstance(e, types.TextEdit)]
        for change in edit.document_changes or []
        if isinstance(change, types.TextDocumentEdit)
    }
    return types.WorkspaceEdit(changes=changes)


def write_files(edit: Edit) -> None:
    """Creates and deletes the files that the client cannot. Raises OSError; FileExistsError if a file is in the way."""
    for path, text in edit.create.items():
        with Path(path).open("x", encoding="utf-8", newline="") as file:
            file.write(text)
    for path in edit.delete:
        Path(path).unlink(missing_ok=True)


def _by_document(source: Source, edit: Edit) -> list[tuple[Document, list[TextChange]]]:
    found: dict[str, tuple[Document, list[TextChange]]] = {}
    for change in edit.edits:
        span, text = to_range(change.range), change.new_text
        place = source.place(span) or _at_end(source, span)
        if place is None:
            raise CannotEdit("the change reaches from one notebook cell into the next; put the code into one cell")
        document, there = place
        if source.kind == "notebook" and key(there.end) >= key(document.text.end()):
            there = _within(document, there)
            if document.text.lines[-1]:
                text = text.removesuffix("\n")
        found.setdefault(document.uri, (document, []))[1].append(types.TextEdit(there, text))
    return list(found.values())


def _at_end(source: Source, span: types.Range) -> tuple[Document, types.Range] | None:
    """Whole lines up to the end of a cell end where the next cell begins."""
    if source.kind != "notebook" or span.end.character != 0 or span.end.line <= span.start.line:
        return None
    start, last = source.locate(span.start.line), source.locate(span.end.line - 1)
    if start is None or last is None or start[0] is not last[0]:
        return None
    return start[0], types.Range(types.Position(start[1], span.start.character), start[0].text.end())


def _within(document: Document, span: types.Range) -> types.Range:
    """Cells end without a line's end, which the joined text has."""
    end = document.text.end()
    return types.Range(span.start, end if key(span.end) > key(end) else span.end)


def _uri(path: str) -> str:
    uri = from_fs_path(path)
    if uri is None:
        raise CannotEdit(f"{path} cannot be written by the editor")
    return uri
