"""The files of a workspace that could hold something to search: for "search workspace"."""

from __future__ import annotations

import os
from collections.abc import Iterator
from pathlib import Path

from mugraph_server.log import logger
from mugraph_server.relevance import can_matter

MOST_FILES = 5_000
LARGEST = 2_000_000
"""Bytes."""
_SKIPPED = frozenset({"node_modules", "site-packages", "__pycache__", "build", "dist", "venv", "env"})


def python_files(root: Path) -> Iterator[Path]:
    """Neither hidden nor installed ones."""
    for folder, folders, files in os.walk(root):
        folders[:] = sorted(
            name
            for name in folders
            if name not in _SKIPPED and not name.startswith(".") and not os.path.exists(f"{folder}/{name}/pyvenv.cfg")
        )
        yield from (Path(folder, name) for name in sorted(files) if name.endswith(".py"))


def candidates(roots: list[Path]) -> list[tuple[Path, str]]:
    """With their texts, by words alone; runs in a thread."""
    found: dict[Path, str] = {}
    for root in roots:
        for number, path in enumerate(python_files(root)):
            if number >= MOST_FILES:
                break
            try:
                if path.stat().st_size <= LARGEST:
                    text = path.read_bytes().decode("utf-8")
                    if can_matter(text):
                        found[path] = text
            except (OSError, UnicodeDecodeError) as error:  # no Python file of today's; it says so when it is opened
                logger.debug("%s is not looked at: %s", path, error)
    return list(found.items())
