"""Counts, on their way out of the program: two files for each process, one of names and one of numbers.

The numbers are in shared memory, so that a process that is killed, or ends without ceremony as a worker of a
DataLoader does, loses none.
"""

from __future__ import annotations

import json
import mmap
import os
import sys
import threading
from pathlib import Path

SIZE = 1 << 16
"""Bytes of numbers, eight for each."""
MOST = 100
"""Reasons that are kept apart for one region."""
OTHERS = "for other reasons"
NO_ROOM = "", "", "there is no room for more reasons", None
"""The key of calls that are counted nowhere else."""

Sizes = tuple[tuple[str, int], ...]
Key = tuple[str, str, str | None, Sizes | None]
"""A module's path, a region's name, why its kernel was not taken (None: it was), and where it was only because tensors
have other sizes than the kernel's, what has which (`x.shape[1]`, 8)."""


class Counts:
    def __init__(self, folder: str) -> None:
        self._folder = folder
        self._begin()

    def _begin(self) -> None:
        self._lock = threading.Lock()
        self._names: int | None = None
        self._numbers: memoryview | None = None
        self._slots: dict[Key, int] = {}
        self._failed = False

    forked = _begin
    """In a child made by fork: its files are its own, and calls that its parent counts are not counted twice."""

    def add(self, key: Key, calls: int = 1) -> None:
        try:
            with self._lock:
                slot = self._slots.get(key)
                if slot is None:
                    slot = self._new(key)
                assert self._numbers is not None
                self._numbers[slot] += calls
        except FileNotFoundError:  # the folder is gone: whoever asked has ended, and reads nothing
            return
        except OSError as error:
            if not self._failed:  # said once, where the program's user sees it
                print(f"mugraph: calls cannot be counted ({error.strerror or error})", file=sys.stderr)
            self._failed = True

    def _new(self, key: Key) -> int:
        if self._names is None:
            path = os.path.join(self._folder, f"{os.getpid()}-{os.urandom(4).hex()}")
            numbers = os.open(f"{path}.counts", os.O_RDWR | os.O_CREAT, 0o600)
            os.ftruncate(numbers, SIZE)
            self._numbers = memoryview(mmap.mmap(numbers, SIZE)).cast("Q")
            os.close(numbers)
            self._names = os.open(f"{path}.jsonl", os.O_WRONLY | os.O_CREAT | os.O_APPEND, 0o600)
            self._name(NO_ROOM)
        if key[2] is not None and sum(one[:2] == key[:2] for one in self._slots) >= MOST:
            key = (key[0], key[1], OTHERS, () if key[3] is not None else None)
            if key in self._slots:
                return self._slots[key]
        return self._name(key) if len(self._slots) < SIZE // 8 else self._slots[NO_ROOM]

    def _name(self, key: Key) -> int:
        assert self._names is not None
        slot = len(self._slots)
        os.write(self._names, json.dumps([slot, *key]).encode() + b"\n")
        self._slots[key] = slot
        return slot


def read(folder: Path) -> dict[Key, int]:
    """What all processes have counted, put together. NO_ROOM is there if it was needed."""
    found: dict[Key, int] = {}
    for names in sorted(folder.glob("*.jsonl")):
        numbers = memoryview(names.with_suffix(".counts").read_bytes()).cast("Q")
        for line in names.read_bytes().splitlines():
            try:
                slot, file, name, why, sizes = json.loads(line)
            except ValueError:  # cut off by the program's death
                continue
            key = file, name, why, None if sizes is None else tuple((what, size) for what, size in sizes)
            found[key] = found.get(key, 0) + numbers[slot]
    if not found.get(NO_ROOM):
        found.pop(NO_ROOM, None)
    return found
