"""What a region is, under the mouse: a picture for clients that render images, else the μGraph as a text tree."""

from __future__ import annotations

import base64
import json
from urllib.parse import quote

from lsprotocol import types

from mugraph_server.documents.marks import key
from mugraph_server.documents.source import Document, Source
from mugraph_server.region_marks import Mark
from mugraph_server.regions import FileState
from mugraph_server.views.ways import same_code
from mugraph_server.views.words import sentence, share, size_table

LONGEST_IMAGE = 90_000
"""Characters of a data URI. VS Code cuts a hover at 100,000, and shows what is left of an image as text."""
SHOWN_WIDTH = 472
"""So that 680 by 270 fits a hover's 250 pixels together with its words."""


def mark_at(source: Source, document: Document, file: FileState, position: types.Position) -> Mark | None:
    """The innermost region, or the one whose function's head this is."""
    line = source.shifted(document, types.Range(position, position)).start
    inside = [m for m in file.marks if key(m.range.start) <= key(line) <= key(m.range.end)]
    heads = [m for m in file.marks if m.head.start.line <= line.line <= m.head.end.line]
    ordered = sorted(inside, key=lambda m: (m.range.end.line - m.range.start.line, m.range.start.line))
    return (ordered or heads or [None])[0]


def content(
    source: Source, file: FileState, mark: Mark, drawing: str | None, images: bool, commands: frozenset[str]
) -> types.MarkupContent:
    """drawing: a tree or an SVG; None where there is none, or not yet. commands: those that links may run."""
    parts = [f"**mugraph: {sentence(file, mark)}**"]
    region = mark.region
    state = file.state(mark)
    took = share(region, fully=True)
    if took and state != "stale":
        parts.append(took)
    if drawing and state not in ("stale",):
        picture = _picture(drawing) if images else f"```text\n{drawing.rstrip()}\n```"
        if picture:
            parts.append(picture)
    links = _links(source, mark, commands) if images and state == "improved" else ""
    if links:
        parts.append(links)
    table = size_table(region) if state in ("improved", "no-gain") else ""
    if table:
        parts.append(table)
    if not images and state in ("improved", "no-gain"):
        parts += [f"- {line}" for line in region.evidence]
    others = [one for one in same_code(file, mark) if one is not mark]
    parts += [f"{_of_calls(one)}: {sentence(file, one)}" for one in others]
    if state == "applied" and (runs := file.runs(mark)):
        parts.append(runs)
    if state == "needs-shapes":
        parts.append("For example, above the function: `# mugraph: x=f16[16, 4096]`")
    return types.MarkupContent(types.MarkupKind.Markdown, "\n\n".join(parts))


def _of_calls(mark: Mark) -> str:
    took = mark.region.share
    return f"For other calls ({took.fitting.partition(';')[0]})" if took and took.fitting else "For other calls"


def _picture(svg: str) -> str | None:
    data = base64.b64encode(svg.encode()).decode()
    if len(data) > LONGEST_IMAGE:
        return None
    return f"![μGraph](data:image/svg+xml;base64,{data}|width={SHOWN_WIDTH})"


def _links(source: Source, mark: Mark, commands: frozenset[str]) -> str:
    """Commands of the editor's extension: a client that has none of them gets no links."""
    wanted = {"mugraph.showGraph": "full graph", "mugraph.showKernel": "kernel", "mugraph.showChange": "difference"}
    arguments = quote(json.dumps([source.uri, mark.key]))
    return " · ".join(
        f"[{words}](command:{command}?{arguments})" for command, words in wanted.items() if command in commands
    )
