"""The open documents, kept up to date message by message. A listener is told of every change."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Protocol

from lsprotocol import types
from pygls.uris import to_fs_path

from mugraph_server.documents.marks import difference
from mugraph_server.documents.source import Document, Source
from mugraph_server.documents.text import Text
from mugraph_server.log import logger

Edit = tuple[types.Range, str]


class Listener(Protocol):
    def opened(self, source: Source) -> None: ...
    def edited(self, source: Source, edits: Sequence[Edit]) -> None: ...
    def saved(self, source: Source) -> None: ...
    def closed(self, source: Source) -> None: ...


class Documents:
    """root: gives the folder that an untitled text would be saved in."""

    def __init__(self, listener: Listener, root: Callable[[], Path]) -> None:
        self._listener = listener
        self._root = root
        self._documents: dict[str, Document] = {}
        self._sources: dict[str, Source] = {}
        self._owner: dict[str, Source] = {}
        self._orders: dict[str, list[str]] = {}  # notebook -> all its cells, the ones with text as well

    @property
    def sources(self) -> list[Source]:
        return list(self._sources.values())

    def document(self, uri: str) -> Document | None:
        return self._documents.get(uri)

    def source(self, uri: str) -> Source | None:
        """The source with this uri, or the one that holds the document with it."""
        return self._sources.get(uri) or self._owner.get(uri)

    def by_path(self, path: str) -> Source | None:
        return next((s for s in self._sources.values() if s.kind == "file" and s.path == path), None)

    # --- texts --------------------------------------------------------------------------------------------------

    def did_open(self, params: types.DidOpenTextDocumentParams) -> None:
        item = params.text_document
        if item.language_id not in ("python", ""):
            return
        if item.uri in self._sources:
            self._forget(self._sources[item.uri])  # opened twice: the last text counts
        document = Document(item.uri, item.version, Text(item.text), item.language_id)
        path = to_fs_path(item.uri)
        kind = "file" if path is not None else "untitled"
        source = Source(item.uri, path or self._unsaved_path(item.uri), kind, [document])
        self._keep(source)
        self._listener.opened(source)

    def did_change(self, params: types.DidChangeTextDocumentParams) -> None:
        document = self._documents.get(params.text_document.uri)
        source = self._owner.get(params.text_document.uri)
        if document is None or source is None:
            return
        document.version = params.text_document.version
        edits = [self._change(source, document, change) for change in params.content_changes]
        source.touch()
        self._listener.edited(source, [edit for edit in edits if edit is not None])

    def did_save(self, params: types.DidSaveTextDocumentParams) -> None:
        source = self._owner.get(params.text_document.uri)
        if source is None:
            return
        document = self._documents[params.text_document.uri]
        if params.text is not None and params.text != str(document.text):
            logger.warning("the text that was saved is not the text that was edited; the saved one counts")
            edit = difference(str(document.text), params.text)
            document.text.assign(params.text)
            source.touch()
            self._listener.edited(source, [edit] if edit else [])
        self._listener.saved(source)

    def did_close(self, params: types.DidCloseTextDocumentParams) -> None:
        source = self._sources.get(params.text_document.uri)
        if source is not None and source.kind != "notebook":
            self._forget(source)

    def _change(self, source: Source, document: Document, change: types.TextDocumentContentChangeEvent) -> Edit | None:
        """The edit as it was understood, in the source's lines."""
        if isinstance(change, types.TextDocumentContentChangePartial):
            first = source.first_line(document)
            understood = document.text.replace(change.range, change.text)
            if source.kind == "notebook":
                source.touch()  # the next change's first line depends on this one
                return _down(understood, first), change.text
            return understood, change.text
        edit = difference(str(document.text), change.text)
        first = source.first_line(document)
        document.text.assign(change.text)
        return (_down(edit[0], first), edit[1]) if edit else None

    # --- notebooks ----------------------------------------------------------------------------------------------

    def notebook_opened(self, params: types.DidOpenNotebookDocumentParams) -> None:
        notebook = params.notebook_document
        if notebook.uri in self._sources:
            self._forget(self._sources[notebook.uri])
        texts = {item.uri: item for item in params.cell_text_documents}
        documents = [
            Document(item.uri, item.version, Text(item.text), item.language_id)
            for cell in notebook.cells
            if cell.kind == types.NotebookCellKind.Code and (item := texts.get(cell.document)) is not None
            if item.language_id == "python"
        ]
        path = to_fs_path(notebook.uri)
        source = Source(notebook.uri, _beside(path) or self._unsaved_path(notebook.uri), "notebook", documents)
        self._keep(source)
        self._orders[notebook.uri] = [cell.document for cell in notebook.cells]
        self._listener.opened(source)

    def notebook_changed(self, params: types.DidChangeNotebookDocumentParams) -> None:
        source = self._sources.get(params.notebook_document.uri)
        cells = params.change.cells
        if source is None or cells is None:
            return
        before = source.text
        if cells.structure is not None:
            self._restructure(source, cells.structure)
        for content in cells.text_content or []:
            document = self._documents.get(content.document.uri)
            if document is None:
                continue
            document.version = content.document.version
            for change in content.changes:
                if isinstance(change, types.TextDocumentContentChangePartial):
                    document.text.replace(change.range, change.text)
                else:
                    document.text.assign(change.text)
        source.touch()
        edit = difference(before, source.text)
        if edit is not None:
            self._listener.edited(source, [edit])

    def notebook_saved(self, params: types.DidSaveNotebookDocumentParams) -> None:
        source = self._sources.get(params.notebook_document.uri)
        if source is not None:
            self._listener.saved(source)

    def notebook_closed(self, params: types.DidCloseNotebookDocumentParams) -> None:
        source = self._sources.get(params.notebook_document.uri)
        if source is not None:
            self._forget(source)

    def _restructure(self, source: Source, structure: types.NotebookDocumentCellChangeStructure) -> None:
        """The array counts all cells, those with text too, and only code cells are ours: so all are kept, by name."""
        order = self._orders[source.uri]
        array = structure.array
        kept = [cell.document for cell in array.cells or []]
        order[array.start : array.start + array.delete_count] = kept
        for item in structure.did_open or []:
            document = Document(item.uri, item.version, Text(item.text), item.language_id)
            self._documents[item.uri] = document
            self._owner[item.uri] = source
        for gone in structure.did_close or []:
            self._documents.pop(gone.uri, None)
            self._owner.pop(gone.uri, None)
        found = [self._documents[uri] for uri in order if uri in self._documents]
        source.documents[:] = [document for document in found if document.language == "python"]
        source.touch()

    # --- the table ----------------------------------------------------------------------------------------------

    def _keep(self, source: Source) -> None:
        self._sources[source.uri] = source
        for document in source.documents:
            self._documents[document.uri] = document
            self._owner[document.uri] = source

    def _forget(self, source: Source) -> None:
        del self._sources[source.uri]
        self._orders.pop(source.uri, None)
        for uri in [uri for uri, owner in self._owner.items() if owner is source]:
            del self._owner[uri]
            self._documents.pop(uri, None)
        self._listener.closed(source)

    def _unsaved_path(self, uri: str) -> str:
        name = "".join(c if c.isalnum() or c in "-_" else "_" for c in uri.rpartition(":")[2].rpartition("/")[2])
        return str(self._root() / f"{name or 'untitled'}.py")


def _beside(path: str | None) -> str | None:
    """Imports of a notebook start from its folder; the path itself need not exist."""
    return str(Path(path).with_suffix(".py")) if path is not None else None


def _down(span: types.Range, lines: int) -> types.Range:
    return types.Range(
        types.Position(span.start.line + lines, span.start.character),
        types.Position(span.end.line + lines, span.end.character),
    )
