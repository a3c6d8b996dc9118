"""What can be done about a region, or about a kernel that no longer fits: named here, worked out when it is chosen.

Nothing here is a source action or a fix-all: saving a file must never swap kernels.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from lsprotocol import types
from mugraph.protocol.values import Recording

from mugraph_server.abilities import Abilities
from mugraph_server.documents.source import Document, Source
from mugraph_server.region_marks import Mark
from mugraph_server.regions import FileState
from mugraph_server.views.ways import offered
from mugraph_server.views.words import gains_of

REWRITE = "refactor.rewrite.mugraph"
KINDS = (REWRITE, "quickfix")

APPLY, REVERT, SHAPES = "mugraph.apply", "mugraph.revert", "mugraph.insertShapes"
AGAIN, REVERT_AND_SEARCH = "mugraph.searchAgain", "mugraph.revertAndSearch"
SHOW_CHANGE = "mugraph.showChange"
_MOST_RECORDINGS = 3


@dataclass(frozen=True)
class Choice:
    """An action, independent of the form in which the client takes it. edits: it changes texts, as `command` with
    `arguments` works out; if False, the command is run."""

    title: str
    command: str
    arguments: tuple[object, ...]
    kind: str = REWRITE
    edits: bool = False
    preferred: bool = False
    diagnostics: tuple[types.Diagnostic, ...] = ()


def actions(
    source: Source,
    document: Document,
    file: FileState,
    context: types.CodeActionContext,
    span: types.Range,
    can: Abilities,
) -> list[types.CodeAction]:
    """As `_choices` finds them, of the kinds that were asked for."""
    found: list[types.CodeAction] = []
    if file.broken:
        return found
    there = source.shifted(document, span)
    for choice in _choices(source, file, there, context.diagnostics, can):
        if context.only is not None and not any(_is_of(choice.kind, kind) for kind in context.only):
            continue
        found.append(_action(choice, can))
    return found


def _choices(
    source: Source, file: FileState, span: types.Range, given: Sequence[types.Diagnostic], can: Abilities
) -> list[Choice]:
    marks = [mark for mark in file.marks if _touches(mark.range, span) or _touches(mark.head, span)]
    choices: list[Choice] = []
    uri = source.uri
    improved = [written for mark in marks if (written := offered(file, mark)) and written[0] is mark]
    for written in improved:
        gain, keys = gains_of([mark.region for mark in written]), [mark.key for mark in written]
        title = f"Replace with generated Triton kernel{'s' if len(keys) > 1 else ''}{f' ({gain})' if gain else ''}"
        if len(improved) > 1:
            title += f" in line {written[0].range.start.line + 1}"
        choices.append(Choice(title, APPLY, (uri, keys), edits=True))
        if SHOW_CHANGE in can.commands:
            choices.append(Choice("Show the change first", SHOW_CHANGE, (uri, keys)))
    every = [mark.key for mark in file.marks if file.state(mark) == "improved" and mark.region.applicable]
    if improved and len(every) > len(improved[0]):
        title = f"Replace all {len(every)} regions of this file with generated Triton kernels"
        choices.append(Choice(title, APPLY, (uri, every), edits=True))
    for mark in marks:
        choices += _about(source, file, mark, given)
    choices += _kernels(source, file, span, given)
    return list({(c.title, c.command): c for c in choices}.values())


def _about(source: Source, file: FileState, mark: Mark, given: Sequence[types.Diagnostic]) -> list[Choice]:
    state, function = file.state(mark), mark.region.function
    if state == "needs-shapes":
        mine = tuple(d for d in given if d.code == "needs-shapes")
        seen = [recording for recording in file.recordings if recording.function == function]
        fills = [
            Choice(
                f"Fill shapes from a recording: {_arguments(recording)}",
                SHAPES,
                (source.uri, function, recording.arguments),
                "quickfix",
                edits=True,
                diagnostics=mine,
            )
            for recording in seen[:_MOST_RECORDINGS]
        ]
        comment = Choice("Insert shapes", SHAPES, (source.uri, function), "quickfix", edits=True, diagnostics=mine)
        return [*fills, comment]
    if state in ("improved", "no-gain", "failed", "stale", "queued") and not (state == "queued" and file.searching):
        return [Choice("Search again", AGAIN, (source.uri, mark.key))]
    if state == "applied":
        return [Choice("Revert to PyTorch", REVERT, (source.uri,), edits=True)]
    return []


def _kernels(source: Source, file: FileState, span: types.Range, given: Sequence[types.Diagnostic]) -> list[Choice]:
    """Of generated kernels that the code under the cursor uses."""
    choices: list[Choice] = []
    for check, place in file.checks:
        if place is None or not _touches(place, span):
            continue
        if check.state == "fits":
            choices.append(Choice("Revert to PyTorch", REVERT, (source.uri,), edits=True))
        elif check.state == "stale":
            mine = tuple(d for d in given if d.code == "kernel-stale")
            revert = Choice(
                "Revert to PyTorch", REVERT, (source.uri,), "quickfix", edits=True, preferred=True, diagnostics=mine
            )
            again = Choice(
                "Revert to PyTorch and search again", REVERT_AND_SEARCH, (source.uri,), "quickfix", diagnostics=mine
            )
            choices += [revert, again]
    return choices


def _action(choice: Choice, can: Abilities) -> types.CodeAction:
    action = types.CodeAction(
        choice.title,
        choice.kind,
        list(choice.diagnostics) or None,
        choice.preferred or None,
    )
    if choice.edits and can.resolves and can.edits and can.creates:
        action.data = {"command": choice.command, "arguments": list(choice.arguments)}
    else:
        action.command = types.Command(choice.title, choice.command, arguments=list(choice.arguments))
    return action


def _arguments(recording: Recording) -> str:
    text = ", ".join(f"{name}={value}" for name, value in recording.arguments.items())
    return text if len(text) <= 60 else f"{text[:57]}..."


def _is_of(kind: str, asked: str) -> bool:
    """Kinds are hierarchies: "refactor" asks for "refactor.rewrite" too."""
    return asked == "" or kind == asked or kind.startswith(f"{asked}.")


def _touches(one: types.Range, other: types.Range) -> bool:
    """By lines: who stands at the beginning of a statement means what it returns."""
    return one.start.line <= other.end.line and other.start.line <= one.end.line
