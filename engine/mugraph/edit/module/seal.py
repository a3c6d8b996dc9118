"""Whether a kernel module is as it was written, which it asks itself when it is imported."""

from __future__ import annotations

from mugraph.edit.source.record import VARIABLE

EVIDENCE = "_EVIDENCE"
SEAL = f'''\
def _as_written(path: str) -> bool:
    """Is the module's text the one whose digest stands in it? One that was not written into a folder has none."""
    text = Path(path).read_text(encoding="utf-8")
    before, mark, rest = text.partition("\\n{EVIDENCE} = {{\\n    'sha256': '")
    if not mark:
        return "\\n{VARIABLE} = " not in text
    found = hashlib.sha256(f"{{before}}{{mark}}{{'0' * 64}}{{rest[64:]}}".encode())
    return found.hexdigest() == rest[:64]
'''
