"""Edits as an editor applies them, by the protocol's letter."""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from typing import Any
from urllib.parse import unquote, urlparse

Json = Any


def path_of(uri: str) -> Path:
    return Path(unquote(urlparse(uri).path))


def apply_edit(
    edit: Json, texts: Mapping[str, str], versions: Mapping[str, int | None], rewrite: Callable[[str, str], None]
) -> None:
    """As an editor applies it: files first as they come, versions compared, nothing done that was not asked.

    texts, versions: of what is open, by URI. rewrite: gives one of those another text."""

    def change_text(uri: str, version: int | None, edits: Sequence[Json]) -> None:
        if uri in texts:
            assert version in (None, versions[uri]), "an edit for another version"
            rewrite(uri, applied(texts[uri], edits))
            return
        path = path_of(uri)
        before = path.read_bytes().decode() if path.exists() else ""
        path.write_bytes(applied(before, edits).encode())

    changes: list[Json] = edit.get("documentChanges") or []
    for change in changes:
        kind = change.get("kind")
        if kind == "create":
            path = path_of(change["uri"])
            if path.exists():
                assert change["options"].get("overwrite"), f"{path} exists already"
            path.write_text("")
        elif kind == "delete":
            path_of(change["uri"]).unlink()
        else:
            change_text(change["textDocument"]["uri"], change["textDocument"].get("version"), change["edits"])
    others: dict[str, Json] = edit.get("changes") or {}
    for uri, edits in others.items():
        change_text(uri, None, edits)


def applied(text: str, edits: Sequence[Json]) -> str:
    """By the protocol's letter: UTF-16 columns, all ranges of the text as it was."""
    data = text.encode("utf-16-le")
    starts = [0]
    for match in re.finditer(r"\r\n|\r|\n", text):
        starts.append(len(text[: match.end()].encode("utf-16-le")))

    def offset(position: Json) -> int:
        line = min(int(position["line"]), len(starts) - 1)
        return min(starts[line] + 2 * int(position["character"]), len(data))

    spans: list[tuple[int, int, str]] = [
        (offset(e["range"]["start"]), offset(e["range"]["end"]), e["newText"]) for e in edits
    ]
    for start, end, new in sorted(spans, key=_start, reverse=True):
        data = data[:start] + new.encode("utf-16-le") + data[end:]
    return data.decode("utf-16-le")


def _start(span: tuple[int, int, str]) -> int:
    return span[0]
