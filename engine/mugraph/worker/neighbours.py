"""Whether anything that a file imports from around it has changed: its own text does not say all of what it does."""

from __future__ import annotations

import logging
from collections.abc import Sequence
from hashlib import sha256
from pathlib import Path

from mugraph.trace.syntax.imported_files import imported_files

_log = logging.getLogger("mugraph.worker")

_MOST = 200
"""Files looked at; beyond them a change is not noticed."""


def fingerprint(path: Path, text: str, others: Sequence[Path] = ()) -> str:
    """Of the Python files that the text imports from its folder or its package, of `others`, and of those that they
    import: their paths, sizes and times."""
    seen: dict[Path, str] = {}
    waiting = [*imported_files(path, text), *others]
    while waiting and len(seen) < _MOST:
        file = waiting.pop()
        if file in seen or file == path:
            continue
        try:
            stat = file.stat()
            seen[file] = f"{stat.st_mtime_ns} {stat.st_size}"
            waiting += imported_files(file, file.read_text(encoding="utf-8"))
        except (OSError, UnicodeDecodeError) as error:
            _log.info("%s, which is imported, cannot be read: %s", file, error)
            seen.setdefault(file, "unreadable")
    return sha256(repr(sorted((str(file), state) for file, state in seen.items())).encode()).hexdigest()
