"""What the client can do, read once from what it says of itself."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any, cast

from lsprotocol import types


@dataclass(frozen=True)
class Abilities:
    """
    pulls:     asks for diagnostics, and asks again when told to: then none are pushed
    edits:     applies versioned changes of several documents; creates, deletes: files with them
    resolves:  asks for a code action's edit when it is chosen
    applies:   takes edits the server sends
    images:    renders images in Markdown (it lets `img` through)
    commands:  the client's own, which links and actions may run: "mugraph.showGraph", "mugraph.showChange", ...
    """

    pulls: bool = False
    related: bool = False
    edits: bool = False
    creates: bool = False
    deletes: bool = False
    resolves: bool = False
    applies: bool = False
    images: bool = False
    refreshes_lenses: bool = False
    refreshes_hints: bool = False
    progress: bool = False
    configuration: bool = False
    registers_configuration: bool = False
    shows_documents: bool = False
    commands: frozenset[str] = frozenset()


def read(client: types.ClientCapabilities, options: Mapping[str, object]) -> Abilities:
    """options: the client's `initializationOptions`."""
    document, workspace, window = client.text_document, client.workspace, client.window
    edit = workspace.workspace_edit if workspace else None
    operations = frozenset((edit.resource_operations or ()) if edit else ())
    refresh = bool(workspace and workspace.diagnostics and workspace.diagnostics.refresh_support)
    published = document.publish_diagnostics if document else None
    action = document.code_action if document else None
    resolved = action.resolve_support.properties if action and action.resolve_support else ()
    markdown = client.general.markdown if client.general else None
    change = workspace.did_change_configuration if workspace else None
    commands = options.get("commands")
    return Abilities(
        pulls=bool(document and document.diagnostic) and refresh,
        related=bool(published and published.related_information)
        or bool(document and document.diagnostic and document.diagnostic.related_document_support),
        edits=bool(edit and edit.document_changes),
        creates=types.ResourceOperationKind.Create in operations,
        deletes=types.ResourceOperationKind.Delete in operations,
        resolves="edit" in resolved,
        applies=bool(workspace and workspace.apply_edit),
        images="img" in ((markdown.allowed_tags or ()) if markdown else ()),
        refreshes_lenses=bool(workspace and workspace.code_lens and workspace.code_lens.refresh_support),
        refreshes_hints=bool(workspace and workspace.inlay_hint and workspace.inlay_hint.refresh_support),
        progress=bool(window and window.work_done_progress),
        configuration=bool(workspace and workspace.configuration),
        registers_configuration=bool(change and change.dynamic_registration),
        shows_documents=bool(window and window.show_document and window.show_document.support),
        commands=_names(commands),
    )


def _names(given: object) -> frozenset[str]:
    if not isinstance(given, list):
        return frozenset()
    return frozenset(name for name in cast("list[Any]", given) if isinstance(name, str))
