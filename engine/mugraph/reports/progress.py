"""Progress of long work, on standard error, gone when it is done; nothing where that is no terminal."""

from __future__ import annotations

from types import TracebackType
from typing import Self

from rich.console import Console
from rich.progress import BarColumn, Progress, SpinnerColumn, TextColumn, TimeElapsedColumn

from mugraph.events import Better, Event, FirstHit, RegionDone, Searching, Traced, Working
from mugraph.reports.text import spent_text


class ProgressView:
    """Shows events. verbose: says each step as a line of its own as well, terminal or not."""

    def __init__(self, console: Console, verbose: bool) -> None:
        self._console = console
        self._verbose = verbose
        self._progress = Progress(
            SpinnerColumn(),
            TextColumn("{task.description}"),
            BarColumn(bar_width=30),
            TimeElapsedColumn(),
            console=console,
            transient=True,
            disable=not console.is_terminal,
        )
        self._task = self._progress.add_task("reading and tracing the file", total=None)
        self._regions, self._trace_s = 0, 0.0

    def __enter__(self) -> Self:
        self._progress.start()
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self._progress.stop()

    def show(self, event: Event) -> None:
        match event:
            case Traced():
                self._regions, self._trace_s = len(event.trace.regions), event.seconds
                self._say(f"traced {event.trace.operators} operators, {self._regions} regions in {event.seconds:.1f} s")
                for barrier, count in sorted(event.trace.barriers.items(), key=lambda item: -item[1]):
                    self._say(f"  barrier {barrier}: {count}")
            case Searching():
                found = f", {event.topologies} topologies" if event.topologies else ""
                unit = f" (unit {event.unit + 1} of {event.units})" if event.units > 1 else ""
                self._step(f"region {event.region + 1} of {self._regions}: searching {event.function}{unit}{found}")
            case FirstHit():
                self._say(
                    f"first verified after {event.seconds:.2f} s: a topology of {len(event.block.block_ops)} operators"
                )
            case Better():
                self._say(f"best candidate by estimate: {event.candidate.estimate_us:.1f} µs (estimated)")
            case Working():
                self._step(f"region {event.region + 1} of {self._regions}: {event.what}", event.done, event.of)
                self._say(event.what)
            case RegionDone():
                self._say(f"region {event.region + 1}: {event.result.status}")
                if event.result.spent_s:
                    self._say(f"region {event.region + 1} took: {spent_text(event.result.spent_s, self._trace_s)}")
            case _:
                pass

    def _step(self, what: str, done: int = 0, of: int = 0) -> None:
        self._progress.update(self._task, description=what, completed=done, total=of or None)

    def _say(self, line: str) -> None:
        if self._verbose:
            self._console.print(line, style="dim", markup=False, highlight=False, soft_wrap=True)
