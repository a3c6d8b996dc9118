"""Answers of `mugraph bench files` that are kept, and taken when it is run again with `--resume`."""

from __future__ import annotations

import contextlib
import json
import os
import threading
from hashlib import sha256
from pathlib import Path
from typing import cast

import msgspec

from mugraph.commands.bench import Json
from mugraph.commands.bench_one import Asked
from mugraph.commands.bench_whole import TOOK_TOO_LONG
from mugraph.commands.common import WrongUsage, say_error
from mugraph.store.keys import versions
from mugraph.tune.device import Device

_LIMIT = "limit_s"
"""That an answer was cut off at."""


class Journal:
    """A line of JSON for each answer. One counts for a file as it is now, asked in the same way. The limit of a file's
    time makes no difference to an answer that came within it; one that was cut off does not count once there is more
    time."""

    def __init__(self, path: Path | None, asked: Asked, device: Device) -> None:
        self._path = path
        self._limit_s = asked.limit_s
        options = {name: value for name, value in msgspec.to_builtins(asked).items() if name != _LIMIT}
        self._asked = json.dumps([options, device.name, versions()], sort_keys=True)
        self._known: dict[str, Json] = {}
        self._lock = threading.Lock()
        if path is None:
            return
        try:
            for line in path.read_bytes().splitlines() if path.exists() else ():
                with contextlib.suppress(ValueError, KeyError, TypeError):  # cut off when the run ended
                    one = json.loads(line)
                    self._known[one["key"]] = one["answer"]
            path.open("ab").close()
        except OSError as error:
            raise WrongUsage(f"{path} cannot be read and written ({error.strerror or error})") from None

    def of(self, file: Path) -> Json | None:
        known = self._known.get(self._key(file)) if self._path is not None else None
        if known is None or cast(float, known.get(_LIMIT, self._limit_s)) < self._limit_s:
            return None
        return {name: value for name, value in known.items() if name != _LIMIT}

    def keep(self, file: Path, answer: Json) -> None:
        if self._path is None:
            return
        if "failed" in answer or answer.get("kernelbench") == TOOK_TOO_LONG:
            answer = {**answer, _LIMIT: self._limit_s}
        line = json.dumps({"file": str(file), "key": self._key(file), "answer": answer}, allow_nan=False)
        try:
            with self._lock, self._path.open("ab") as journal:
                cut_off = journal.tell() > 0 and self._path.read_bytes()[-1:] != b"\n"
                journal.write(b"\n" * cut_off + line.encode() + b"\n")
        except OSError as error:
            say_error(f"the answer cannot be kept in {self._path}: {error.strerror or error}")

    def _key(self, file: Path) -> str:
        try:
            text = file.read_bytes()
        except OSError:
            text = b""
        return sha256(b"\0".join([os.path.abspath(file).encode(), text, self._asked.encode()])).hexdigest()[:32]
