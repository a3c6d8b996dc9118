"""Temporary folders of processes that are killed: the process that starts them removes what they leave behind."""

from __future__ import annotations

import os
import tempfile
from collections.abc import Mapping

Scratch = tempfile.TemporaryDirectory[str]


def scratch(name: str) -> Scratch:
    """A temporary folder for a child process, to be removed (`cleanup`, or the end of a `with`) after its end."""
    return tempfile.TemporaryDirectory(prefix=f"mugraph-{name}-", ignore_cleanup_errors=True)


def inside(folder: Scratch | str, environment: Mapping[str, str] | None = None) -> dict[str, str]:
    """The environment, os.environ if None, of a process whose temporary files go into the folder."""
    path = folder if isinstance(folder, str) else folder.name
    return {**(os.environ if environment is None else environment), **dict.fromkeys(("TMPDIR", "TEMP", "TMP"), path)}
