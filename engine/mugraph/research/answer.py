"""The answer of one region, with its times, and the process that finds those of a file from a cold start.

Run as `python -P -m mugraph.research.answer FILE BUDGET FILE_BUDGET TARGET BEGAN [NUMBER ...]`. BEGAN is on the
monotonic clock; regions with these numbers are left out. A line of JSON on standard output for each other, as soon as
it is known.
"""

from __future__ import annotations

import os
import signal
import sys
import time
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import replace
from pathlib import Path
from types import FrameType
from typing import NoReturn

import msgspec

from mugraph.beginning import beginning
from mugraph.events import Clock, RegionDone, RegionResult
from mugraph.memory.traces import traced
from mugraph.options import Options
from mugraph.pipeline import run_trace, working
from mugraph.research.processor import processor_s
from mugraph.search.topologies.limits import never
from mugraph.solve.programs import Programs, ProgramText
from mugraph.solve.timing import RegionTimer
from mugraph.solve.tools import Tools
from mugraph.targets import Target
from mugraph.trace.syntax.source import read_source
from mugraph.tune.against import WITHOUT_GUARDS
from mugraph.tune.device import Device
from mugraph.verification.float_test import FloatTester

OURS = "mugraph"
TRACE_S = 120.0


class Answer(msgspec.Struct):
    """One region. Times are microseconds by name: of PyTorch's ways, and OURS.

    number:      in its file's trace
    size:        of a range, that the times are of
    start_s:     of a file's first region: until its search could begin (the process, imports, tracing)
    seconds:     until the answer was there, start_s left out
    processor_s: of those, what processors have worked, in all processes of this one
    spent_s:     what they went to
    device_us, called_us: measured, on the device and as a program calls it; empty where nothing was
    estimated_us: by the cost model, of the search units alone
    speedup, best, called_speedup, called_best: as measured, noise taken for none
    guarded:     the call had the guards of the user's own objects
    """

    file: str
    number: int
    function: str
    status: str
    reason: str | None
    searched: bool
    size: int | None
    device: str
    spent_s: Mapping[str, float]
    device_us: Mapping[str, float]
    called_us: Mapping[str, float]
    estimated_us: Mapping[str, float]
    speedup: float | None = None
    best: float | None = None
    called_speedup: float | None = None
    called_best: float | None = None
    guarded: bool = False
    seconds: float = 0.0
    processor_s: float = 0.0
    start_s: float = 0.0

    @property
    def name(self) -> str:
        return f"{Path(self.file).stem}:{self.function}"


def answer_of(
    path: Path, number: int, result: RegionResult, device: Device, estimated_us: Mapping[str, float]
) -> Answer:
    timing = result.timing
    measured = timing.source == "measured"
    called = timing.as_called if measured else None
    return Answer(
        file=str(path),
        number=number,
        function=result.region.function,
        status=result.status,
        reason=result.reason,
        searched=bool(result.units),
        size=timing.at,
        device=timing.device if measured else device.name,
        spent_s=dict(result.spent_s),
        device_us=_times(timing) if measured else {},
        called_us=_times(called) if called is not None else {},
        estimated_us=estimated_us,
        speedup=timing.speedup if measured else None,
        best=timing.best_speedup if measured else None,
        called_speedup=called.speedup if called is not None else None,
        called_best=called.best_speedup if called is not None else None,
        guarded=called is not None and WITHOUT_GUARDS not in called.method,
    )


def _times(clock: Clock) -> dict[str, float]:
    return {**clock.peers_us, **({OURS: clock.optimized_us} if clock.optimized_us is not None else {})}


def estimated(path: Path, number: int, result: RegionResult, device: Device, target: Target) -> dict[str, float]:
    """What the region is said to take where nothing can be measured: of the kernels that were chosen. Empty where there
    are none."""
    timing = result.timing
    if timing.source != "measured" or result.plan is None:
        return _times(timing)
    with FloatTester("interpreter") as tester:
        timer = RegionTimer(number, device, Tools(target, tester), None, path, 0.0, never)
        found = timer.estimated(result.plan, result.units)
    return _times(next((row for row in found.sizes if row.size == timing.at), found))


def answers(path: Path, options: Options, began: float, known: Sequence[int]) -> Iterator[Answer]:
    """Of each region that is not known, with nothing taken from a store."""
    with beginning(options, working) as begun:
        trace = traced(path, source=None, timeout_s=TRACE_S, store=None, beginning=begun.soon)
        ready = begun.ready()
        device, target, tools = ready.device, ready.target, ready.tools
        for error in trace.errors:
            print(error, file=sys.stderr)
        numbers = [number for number in range(len(trace.regions)) if number not in known]
        left = replace(trace, regions=tuple(trace.regions[number] for number in numbers), shares={})
        programs = Programs(ProgramText(read_source(path), None, None))
        begun, used = time.monotonic(), processor_s()
        start_s = begun - began
        for event in run_trace(left, device, target, options, programs=programs, tools=tools):
            if isinstance(event, RegionDone):
                number, result = numbers[event.region], event.result
                seconds, worked = time.monotonic() - begun, processor_s() - used
                answer = answer_of(path, number, result, device, estimated(path, number, result, device, target))
                yield msgspec.structs.replace(answer, seconds=seconds, processor_s=worked, start_s=start_s)
                begun, used, start_s = time.monotonic(), processor_s(), 0.0


def _exit(number: int, frame: FrameType | None) -> NoReturn:
    """The processes that it has started end with it."""
    sys.exit(1)


def main(arguments: Sequence[str]) -> int:
    signal.signal(signal.SIGTERM, _exit)
    path, budget_s, file_budget_s, target, began, *known = arguments
    options = Options(budget_s=float(budget_s), file_budget_s=float(file_budget_s), target=target)
    lines = os.fdopen(os.dup(1), "wb")
    os.dup2(2, 1)  # what the user's code prints is no answer
    for one in answers(Path(path), options, float(began), [int(number) for number in known]):
        lines.write(msgspec.json.encode(one) + b"\n")
        lines.flush()
    return 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
