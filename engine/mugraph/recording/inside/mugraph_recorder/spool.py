"""What was seen, on its way out of the program: a file of JSON lines for each process, written as things are seen.

Written at once and by one system call, so that a program that is killed, or ends without ceremony, loses some counts.
"""

from __future__ import annotations

import json
import os
import sys

from .looks import Seen
from .passed import Over, Passed


class Spool:
    def __init__(self, folder: str, passed: Passed) -> None:
        self._folder = folder
        self._file: int | None = None
        self._passed = passed
        self._said: dict[Over, int] = {}
        self._full = False

    def write(self, seen: Seen, run: float) -> None:
        """run: seconds that the program's run has taken so far"""
        now = seen.calls, seen.time.total, seen.time.device_calls
        if now == seen.written and seen.picture is None:
            return
        line = {
            "is": "set",
            "file": seen.function.file,
            "function": seen.function.name,
            "set": seen.number,
            "arguments": seen.arguments,
            "opaque": seen.opaque,
            "devices": seen.devices,
            "init": seen.init,
            "calls": seen.calls,
            "gradients": seen.gradients,
            "wanted_of": seen.wanted_of,
            "strides": seen.strides,
            "structure": seen.structure or "",
            "numbers": seen.numbers,
            "spans": seen.named_spans,
            "seconds": [seen.time.total, seen.time.own, seen.time.device, seen.time.device_calls, run],
        }
        try:
            if seen.picture is not None:
                line["picture"] = seen.picture
            data = json.dumps(line, allow_nan=False).encode() + b"\n"
        except ValueError as error:  # a text that is no text
            self._passed.note(seen.function.file, seen.function.name, "the objects of a call", error)
            del line["picture"]
            data = json.dumps(line).encode() + b"\n"
        seen.picture = None
        if self._put(data):
            seen.written = now

    def write_passed(self) -> None:
        """What was passed over so far, in all."""
        counts = dict(self._passed.counts)
        if counts != self._said:
            line = {"is": "passed", "over": [[*over, times] for over, times in counts.items()]}
            if self._put(json.dumps(line).encode() + b"\n"):
                self._said = counts

    def _put(self, data: bytes) -> bool:
        try:
            if self._file is None:
                name = f"{os.getpid()}-{os.urandom(4).hex()}.jsonl"
                self._file = os.open(os.path.join(self._folder, name), os.O_WRONLY | os.O_CREAT | os.O_APPEND, 0o600)
            os.write(self._file, data)
        except FileNotFoundError:  # the folder is gone: whoever asked for the recording has ended, and reads nothing
            return False
        except OSError as error:
            if not self._full:  # said once, where the program's user sees it
                print(f"mugraph: what is seen cannot be recorded ({error.strerror or error})", file=sys.stderr)
            self._full = True
            return False
        return True

    def forked(self) -> None:
        """In a child made by fork: its file is its own."""
        self._said = {}
        if self._file is not None:
            os.close(self._file)
        self._file = None
