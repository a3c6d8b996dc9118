"""The fake engine's edits: calls in place of returned expressions, and back; comments about shapes."""

from __future__ import annotations

import re
from pathlib import Path

from fake_regions import DEFINITION, RETURN, regions_of
from mugraph.protocol import messages as m
from mugraph.protocol import values as v

_CALL = re.compile(r"_mugraph\.\w+_fits\(\) or (.+)$")


def edit(message: m.PrepareEdit | m.Preview, is_known: bool) -> m.Edit | m.KernelPreview | m.Failed:
    """Puts calls in place of the regions that are asked for. is_known: whether the document was searched"""
    document, text = message.document, message.document.text or ""
    regions = regions_of(text, document.uri)
    chosen = [r for r in regions if message.keys is None or r.key in message.keys]
    if not is_known or not chosen:
        return m.Failed(message.id, "there is no verified kernel for this code; search again")
    path = Path(document.path)
    module = path.with_name(f"{path.stem}_mugraph.py")
    first = v.Position(0, 0)
    edits = [v.TextEdit(v.Range(first, first), f"import {module.stem} as _mugraph\n")]
    lines = text.split("\n")
    for region in chosen:
        number = region.range.start.line
        found = RETURN.match(lines[number])
        assert found is not None
        new = f"{found[1]}_mugraph.{region.function}_fits() or {found[2]}\n"
        edits.append(v.TextEdit(v.Range(v.Position(number, 0), v.Position(number + 1, 0)), new))
    create = {str(module): f'"""GPU kernels for {path.name} written by mugraph."""\n'}
    if isinstance(message, m.Preview):
        preview = (str(module), create[str(module)], text, "after")
        return m.KernelPreview(message.id, document.uri, document.version, *preview)
    label = "Replace with generated Triton kernel"
    return m.Edit(message.id, document.uri, document.version, edits, label, create)


def revert(message: m.PrepareRevert) -> m.Edit | m.Failed:
    document = message.document
    edits: list[v.TextEdit] = []
    lines = (document.text or "").split("\n")
    for number, line in enumerate(lines):
        place = v.Range(v.Position(number, 0), v.Position(number + 1, 0))
        if line.startswith("import ") and line.endswith(" as _mugraph"):
            edits.append(v.TextEdit(place, ""))
        elif found := _CALL.search(line):
            edits.append(v.TextEdit(place, line[: found.start()] + found[1] + "\n"))
    if not edits:
        return m.Failed(message.id, "There is nothing to undo.")
    path = Path(document.path)
    module = str(path.with_name(f"{path.stem}_mugraph.py"))
    return m.Edit(message.id, document.uri, document.version, edits, "Revert to PyTorch", delete=[module])


def shapes(message: m.InsertShapes) -> m.Edit | m.Failed:
    document = message.document
    given = ", ".join(f"{k}={s}" for k, s in (message.arguments or {"x": "f16[?, ?]"}).items())
    for number, line in enumerate((document.text or "").split("\n")):
        found = DEFINITION.match(line)
        if found and found[2] == message.function:
            at = v.Position(number, 0)
            edit = v.TextEdit(v.Range(at, at), f"{found[1]}# mugraph: {given}\n")
            return m.Edit(message.id, document.uri, document.version, [edit], "Insert shapes")
    return m.Failed(message.id, "there is no such function")
