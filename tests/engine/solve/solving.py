"""A region of a trace, solved with a machine that stands in for the device."""

from __future__ import annotations

from pathlib import Path
from typing import Any, cast

from mugraph.events import RegionResult
from mugraph.ir.names import Scope
from mugraph.ir.region import Trace
from mugraph.options import Options
from mugraph.solve.filetime import FileTime
from mugraph.solve.job import RegionJob
from mugraph.solve.tools import Tools

from tests.engine.solve.machine import HERE, TARGET, Machine


def solved(trace: Trace, name: str, machine: Machine | None) -> RegionResult:
    it = cast(Any, machine)
    (number,) = [n for n, region in enumerate(trace.regions) if region.function == name]
    tools = Tools(TARGET, cast(Any, machine or Machine()), compiled=machine is not None, measurer=it, pool=it, peers=it,
                  file_time=FileTime(500.0))  # fmt: skip
    options = Options(budget_s=0.5, max_kernels=1)
    job = RegionJob(
        number, trace.regions[number], Scope(()), HERE, tools, options, None, lambda: False, Path(trace.path)
    )
    steps = job.result()
    while True:
        try:
            next(steps)
        except StopIteration as end:
            return end.value
