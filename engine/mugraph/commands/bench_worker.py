"""A process of `mugraph bench files`, which answers one file after the other."""

from __future__ import annotations

import contextlib
import json
import os
import subprocess
import sys
import threading
import time
from collections.abc import Mapping
from pathlib import Path
from typing import IO, cast

import msgspec
import psutil

from mugraph.commands.bench import Json
from mugraph.commands.bench_one import Asked, first_of
from mugraph.commands.bench_whole import LEAST_S
from mugraph.sharing import is_waiting

_LOOK_S = 0.05
_ENDS_S = 5.0
"""That a comparison of a whole file may take to end, once its time is over."""


def failed(why: str, seconds: float) -> Json:
    return {"failed": why, "seconds": seconds, "errors": [], "kernelbench": None, "rows": []}


class Worker:
    """A process that answers one file after the other. It is replaced when it ends, or takes too long. folder: there as
    long as it is. environment: more of it"""

    def __init__(self, asked: Asked, folder: Path, environment: Mapping[str, str]) -> None:
        self._asked, self._folder, self._environment = asked, folder, environment
        self._process: subprocess.Popen[bytes] | None = None
        self._said: IO[bytes] | None = None
        self._lock = threading.Lock()
        self._closed = False
        self._number = 0

    def answer(self, file: Path) -> Json:
        """With "failed", where there is none."""
        began = time.monotonic()
        self._number += 1
        out = self._folder / f"{id(self)}-{self._number}.json"
        first = Path(first_of(str(out)))
        process, said = self._begun()
        said.seek(0, os.SEEK_END)
        here = said.tell()
        assert process.stdin is not None
        with contextlib.suppress(OSError):  # it has ended, which is seen below
            process.stdin.write(json.dumps([str(file), str(out)]).encode() + b"\n")
            process.stdin.flush()
        while not out.exists() and process.poll() is None:
            limit_s = self._asked.limit_s + (LEAST_S + _ENDS_S if first.exists() else 0.0)
            if time.monotonic() - began > limit_s:
                break
            time.sleep(_LOOK_S)
            if is_waiting(self._folder, process.pid):  # for other files, which is no time of its own
                began += _LOOK_S
        spent = time.monotonic() - began
        try:
            found = cast(Json, json.loads(out.read_bytes()))
        except (OSError, ValueError):
            status = process.poll()
            self.end()
            with contextlib.suppress(OSError, ValueError):  # without the comparison of the whole file
                return cast(Json, json.loads(first.read_bytes()))
            said.seek(here)
            lines = [line for line in said.read().decode(errors="replace").splitlines() if line.strip()]
            if status is None:
                last = f" (at the end: {lines[-1]})" if lines else ""
                return failed(f"it took longer than {self._asked.limit_s:g} s{last}", spent)
            ended = f"ended by signal {-status}" if status < 0 else f"status {status}"
            return failed(f"{ended}: {lines[-1]}" if lines else ended, spent)
        out.unlink()
        first.unlink(missing_ok=True)
        return found

    def _begun(self) -> tuple[subprocess.Popen[bytes], IO[bytes]]:
        with self._lock:
            if self._closed:
                raise InterruptedError
            if self._process is None or self._process.poll() is not None or self._said is None:
                path = self._folder / f"{id(self)}.said"
                self._said = self._said or path.open("w+b")
                with path.open("ab") as said:
                    self._process = subprocess.Popen(
                        [sys.executable, "-m", "mugraph.commands.bench_one", msgspec.json.encode(self._asked).decode()],
                        stdin=subprocess.PIPE,
                        stdout=said,
                        stderr=said,
                        env={**os.environ, **self._environment, "PYTHONUNBUFFERED": "1"},
                        start_new_session=True,
                    )
            return self._process, self._said

    def end(self) -> None:
        """The process. The next file begins another."""
        process, self._process = self._process, None
        if process is not None:
            _end(process.pid)
            process.wait()
            if process.stdin is not None:
                with contextlib.suppress(OSError):
                    process.stdin.close()

    def close(self) -> None:
        with self._lock:
            self._closed = True
        self.end()
        if self._said is not None:
            self._said.close()


def _end(process: int) -> None:
    """With all processes that it has started, which are in sessions of their own."""
    with contextlib.suppress(psutil.Error):
        parent = psutil.Process(process)
        for one in (parent, *parent.children(recursive=True)):
            with contextlib.suppress(psutil.Error):
                one.kill()
