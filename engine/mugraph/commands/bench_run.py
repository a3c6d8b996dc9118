"""The files of `mugraph bench files`, in processes of their own, one after the other or side by side."""

from __future__ import annotations

import contextlib
import json
import os
import subprocess
import sys
import tempfile
import threading
import time
from collections import deque
from collections.abc import Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass, field
from hashlib import sha256
from pathlib import Path
from typing import IO, cast

import msgspec
import psutil

from mugraph.commands.bench import Json
from mugraph.commands.bench_one import Asked, first_of
from mugraph.commands.bench_whole import LEAST_S
from mugraph.commands.common import WrongUsage, say_error
from mugraph.sharing import environment, is_waiting
from mugraph.store.keys import versions
from mugraph.tune.device import Device

_OUT_OF_MEMORY = "out of memory"
_LOOK_S = 0.05
_ENDS_S = 5.0
"""That a comparison of a whole file may take to end, once its time is over."""


class Journal:
    """Answers that were kept: a line of JSON each. One counts for a file as it is now, asked in the same way."""

    def __init__(self, path: Path | None, asked: Asked, device: Device) -> None:
        self._path = path
        self._asked = json.dumps([msgspec.to_builtins(asked), device.name, versions()], sort_keys=True)
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
        return self._known.get(self._key(file)) if self._path is not None else None

    def keep(self, file: Path, answer: Json) -> None:
        if self._path is None:
            return
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


@dataclass
class Run:
    """within_s: no file begins later, and it has no answer then."""

    asked: Asked
    journal: Journal
    within_s: float | None = None
    _began: float = field(default_factory=time.monotonic)

    def answers(self, files: Sequence[Path], jobs: int) -> dict[Path, Json]:
        """In the order of the files. What has run out of the device's memory beside others runs once more, alone."""
        found: dict[Path, Json] = {}
        for file in files:
            known = self.journal.of(file)
            if known is not None:
                found[file] = known
                self._say(files, file, known, " (as it was)")
        again = self._answered([file for file in files if file not in found], files, found, jobs)
        self._answered(again, files, found, 1, " (once more, alone)")
        return {file: found[file] for file in files}

    def _answered(
        self, waiting: Sequence[Path], files: Sequence[Path], found: dict[Path, Json], jobs: int, said: str = ""
    ) -> list[Path]:
        """What is to be run once more. found: the answers are put there"""
        again: list[Path] = []
        queue = deque(waiting)

        def work(worker: Worker) -> None:
            while queue:
                file = queue.popleft()
                if self.within_s is not None and time.monotonic() - self._began > self.within_s:
                    found.setdefault(file, _failed(f"not begun within {self.within_s:g} s", 0.0))
                    continue
                answer = found[file] = worker.answer(file)
                if jobs > 1 and _OUT_OF_MEMORY in json.dumps(answer).lower():
                    again.append(file)
                    worker.end()
                else:
                    self.journal.keep(file, answer)
                self._say(files, file, answer, said)

        count = min(jobs, len(waiting))
        with tempfile.TemporaryDirectory(prefix="mugraph-jobs-", ignore_cleanup_errors=True) as folder:
            workers = [Worker(self.asked, Path(folder), environment(jobs, Path(folder))) for _ in range(count)]
            with ThreadPoolExecutor(max(1, count)) as threads:
                try:
                    list(threads.map(work, workers))
                finally:
                    queue.clear()  # the user may have had enough
                    for worker in workers:
                        worker.close()
        return again

    def _say(self, files: Sequence[Path], file: Path, answer: Json, more: str = "") -> None:
        number = files.index(file) + 1
        print(f"{number}/{len(files)} {file}: {_in_words(answer)}{more}", file=sys.stderr, flush=True)


def _failed(why: str, seconds: float) -> Json:
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
                return _failed(f"it took longer than {self._asked.limit_s:g} s{last}", spent)
            ended = f"ended by signal {-status}" if status < 0 else f"status {status}"
            return _failed(f"{ended}: {lines[-1]}" if lines else ended, spent)
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


def _in_words(answer: Json) -> str:
    if "failed" in answer:
        return f"no answer, {answer['failed']}"
    rows = cast("list[Json]", answer["rows"])
    offered = sum(bool(row["offered"]) for row in rows)
    spent = f"{cast(float, answer['seconds']):.0f} s"
    errors = cast("list[str]", answer["errors"])
    if errors and not rows:
        return f"{errors[0]} ({spent})"
    return f"{offered} of {len(rows)} region{'' if len(rows) == 1 else 's'} improved ({spent})"
