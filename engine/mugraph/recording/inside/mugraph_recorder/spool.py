"""What was seen, on its way out of the program: a file of JSON lines for each process, written as things are seen.

Written at once and by one system call, so that a program that is killed, or ends without ceremony, loses some counts.
"""

from __future__ import annotations

import json
import os
from collections.abc import Sequence

from .looks import Seen


class Spool:
    def __init__(self, folder: str) -> None:
        self._folder = folder
        self._file: int | None = None

    def write(self, seen: Seen) -> None:
        if seen.calls == seen.written:
            return
        line = {
            "file": seen.function.file,
            "function": seen.function.name,
            "set": seen.number,
            "arguments": seen.arguments,
            "opaque": seen.opaque,
            "devices": seen.devices,
            "init": seen.init,
            "calls": seen.calls,
        }
        try:
            if self._file is None:
                name = f"{os.getpid()}-{os.urandom(4).hex()}.jsonl"
                self._file = os.open(os.path.join(self._folder, name), os.O_WRONLY | os.O_CREAT | os.O_APPEND, 0o600)
            os.write(self._file, json.dumps(line).encode() + b"\n")
            seen.written = seen.calls
        except OSError:  # the folder is gone: whoever asked for the recording has ended
            return

    def finish(self, sets: Sequence[Seen]) -> None:
        """The counts as they are now."""
        for seen in list(sets):
            self.write(seen)

    def forked(self, sets: Sequence[Seen]) -> None:
        """In a child made by fork: its file is its own, and calls that its parent counts are not counted twice."""
        if self._file is not None:
            os.close(self._file)
        self._file = None
        for seen in sets:
            seen.calls = seen.written = 0
