"""The record that undoing an edit needs: data at the end of the kernel module, which a person can read."""

from __future__ import annotations

import ast
import hashlib
from dataclasses import dataclass
from pathlib import Path
from typing import cast

from mugraph.edit.source.text import EditError

VARIABLE = "_REVERT"


def text_hash(text: str | bytes) -> str:
    return hashlib.sha256(text.encode() if isinstance(text, str) else text).hexdigest()


@dataclass(frozen=True)
class Replaced:
    """One replaced part of the user's file.

    id:       of the μGraph
    anchor:   text that occurs once in the file, inside the replacement ("mugraph_kernels.rms_norm_fits(")
    before:   characters of the replacement that stand before the anchor
    length:   characters of the replacement
    sha256:   of the replacement
    original: what stood there
    also:     names, in the kernel module, of further regions there: each takes calls that those before it refuse
    """

    id: str
    anchor: str
    before: int
    length: int
    sha256: str
    original: str
    also: tuple[str, ...] = ()

    @staticmethod
    def of(id: str, anchor: str, replacement: str, original: str, also: tuple[str, ...] = ()) -> Replaced:
        at, digest = replacement.index(anchor), text_hash(replacement)
        return Replaced(id, anchor, at, len(replacement), digest, original, also)

    def names(self, record: Record) -> tuple[str, ...]:
        """Of its regions in the kernel module, in the order in which they are asked."""
        return self.anchor.removeprefix(f"{record.alias}.").removesuffix("_fits("), *self.also


@dataclass(frozen=True)
class Record:
    """
    file:        name of the user's file, in the kernel module's folder
    alias:       of the kernel module in it
    import_text: what was inserted for the import, line ends included
    newline:     the file's line end; None when it mixed kinds. Texts here have "\\n" unless it is None.
    original:    sha256 of the file's bytes before the edit
    edited:      sha256 of the file's bytes after it
    """

    file: str
    alias: str
    import_text: str
    newline: str | None
    original: str
    edited: str
    regions: tuple[Replaced, ...]


def _literal(text: str, indent: str) -> str:
    """The string as a Python literal, with one source line on each of its lines."""
    lines = text.splitlines(keepends=True)
    if len(lines) < 2:
        return repr(text)
    return "(\n" + "".join(f"{indent}    {line!r}\n" for line in lines) + f"{indent})"


def record_text(record: Record) -> str:
    """Python text that assigns the record."""
    lines = [
        f"# What `mugraph revert {record.file}` puts back; nothing here runs.",
        f"{VARIABLE} = {{",
        f'    "file": {record.file!r},',
        f'    "alias": {record.alias!r},',
        f'    "import": {_literal(record.import_text, "    ")},',
        f'    "newline": {record.newline!r},',
        f'    "original_sha256": {record.original!r},',
        f'    "edited_sha256": {record.edited!r},',
        '    "regions": [',
    ]
    for region in record.regions:
        lines += [
            "        {",
            f'            "id": {region.id!r},',
            f'            "anchor": {region.anchor!r},',
            f'            "before": {region.before},',
            f'            "length": {region.length},',
            f'            "sha256": {region.sha256!r},',
            f'            "original": {_literal(region.original, "            ")},',
            *([f'            "also": {list(region.also)!r},'] if region.also else []),
            "        },",
        ]
    return "\n".join([*lines, "    ],", "}"]) + "\n"


def read_record(module: Path) -> Record | None:
    """The record in a kernel module; None when the file is no kernel module. Never runs the module.

    Raises EditError when the record is there and damaged.
    """
    try:
        text = module.read_text(encoding="utf-8")
    except (OSError, UnicodeDecodeError):
        return None
    if f"\n{VARIABLE} = {{" not in text:
        return None
    try:
        for node in ast.parse(text).body:
            if isinstance(node, ast.Assign) and ast.unparse(node.targets[0]) == VARIABLE:
                return _record(cast(dict[str, object], ast.literal_eval(node.value)))
    except (SyntaxError, ValueError, KeyError, TypeError):
        pass
    raise EditError(f"{module.name} was edited by hand and no longer holds what undoing needs; restore the file first.")


def _record(data: dict[str, object]) -> Record:
    newline = data["newline"]
    return Record(
        file=_text(data, "file"),
        alias=_text(data, "alias"),
        import_text=_text(data, "import"),
        newline=None if newline is None else _text(data, "newline"),
        original=_text(data, "original_sha256"),
        edited=_text(data, "edited_sha256"),
        regions=tuple(
            Replaced(
                _text(region, "id"),
                _text(region, "anchor"),
                _number(region, "before"),
                _number(region, "length"),
                _text(region, "sha256"),
                _text(region, "original"),
                tuple(map(str, cast(list[object], region.get("also", [])))),
            )
            for region in cast(list[dict[str, object]], data["regions"])
        ),
    )


def _text(data: dict[str, object], key: str) -> str:
    value = data[key]
    if not isinstance(value, str):
        raise TypeError(key)
    return value


def _number(data: dict[str, object], key: str) -> int:
    value = data[key]
    if not isinstance(value, int):
        raise TypeError(key)
    return value
