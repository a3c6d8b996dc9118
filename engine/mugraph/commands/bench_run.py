"""The files of `mugraph bench files`, in processes of their own, one after the other or side by side."""

from __future__ import annotations

import json
import sys
import tempfile
import time
from collections import deque
from collections.abc import Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass, field
from pathlib import Path
from typing import cast

from mugraph import too_little_memory
from mugraph.commands.bench import Json
from mugraph.commands.bench_journal import Journal
from mugraph.commands.bench_one import Asked
from mugraph.commands.bench_worker import Worker, failed
from mugraph.sharing import environment


@dataclass
class Run:
    """within_s:  no file begins later, and it has no answer then
    devices:   GPUs that the processes are shared out among, as CUDA_VISIBLE_DEVICES names them; none: as it is set
    """

    asked: Asked
    journal: Journal
    within_s: float | None = None
    devices: Sequence[str] = ()
    _began: float = field(default_factory=time.monotonic)

    def answers(self, files: Sequence[Path], jobs: int) -> dict[Path, Json]:
        """In the order of the files. What runs out of a device's memory beside others runs once more, alone."""
        found: dict[Path, Json] = {}
        for file in files:
            known = self.journal.of(file)
            if known is not None:
                found[file] = known
                self._say(files, file, known, " (as it was)")
        again = self._answered([file for file in files if file not in found], files, found, jobs)
        self._answered(again, files, found, max(1, len(self.devices)), " (once more, alone)", alone=True)
        return {file: found[file] for file in files}

    def _answered(
        self,
        waiting: Sequence[Path],
        files: Sequence[Path],
        found: dict[Path, Json],
        jobs: int,
        said: str = "",
        *,
        alone: bool = False,
    ) -> list[Path]:
        """What is to be run once more. found: the answers are put there. alone: no other is on the device"""
        again: list[Path] = []
        queue = deque(waiting)

        def work(worker: Worker) -> None:
            while queue:
                file = queue.popleft()
                if self.within_s is not None and time.monotonic() - self._began > self.within_s:
                    found.setdefault(file, failed(f"not begun within {self.within_s:g} s", 0.0))
                    continue
                answer = found[file] = worker.answer(file)
                if jobs > 1 and not alone and too_little_memory.is_said(json.dumps(answer)):
                    again.append(file)
                    worker.end()
                else:
                    self.journal.keep(file, answer)
                self._say(files, file, answer, said)

        count = min(jobs, len(waiting))
        with tempfile.TemporaryDirectory(prefix="mugraph-jobs-", ignore_cleanup_errors=True) as folder:
            workers = [self._worker(Path(folder), number, jobs) for number in range(count)]
            with ThreadPoolExecutor(max(1, count)) as threads:
                try:
                    list(threads.map(work, workers))
                finally:
                    queue.clear()  # the user may have had enough
                    for worker in workers:
                        worker.close()
        return again

    def _worker(self, folder: Path, number: int, jobs: int) -> Worker:
        """Those of one device take turns there, by what is in a folder of their own."""
        if not self.devices:
            return Worker(self.asked, folder, environment(jobs, folder))
        which = number % len(self.devices)
        own = folder / str(which)
        own.mkdir(exist_ok=True)
        return Worker(self.asked, own, {**environment(jobs, own), "CUDA_VISIBLE_DEVICES": self.devices[which]})

    def _say(self, files: Sequence[Path], file: Path, answer: Json, more: str = "") -> None:
        number = files.index(file) + 1
        print(f"{number}/{len(files)} {file}: {_in_words(answer)}{more}", file=sys.stderr, flush=True)


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
