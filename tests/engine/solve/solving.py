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
from mugraph.store import Store

from tests.engine.solve.machine import HERE, TARGET, Machine


def solved(trace: Trace, name: str, machine: Machine | None) -> RegionResult:
    """Of the function's region. machine: none where there is no GPU"""
    it = cast(Any, machine)
    tools = Tools(TARGET, cast(Any, machine or Machine()), compiled=machine is not None, measurer=it, pool=it, peers=it,
                  file_time=FileTime(500.0))  # fmt: skip
    return solved_with(trace, name, tools, Options(budget_s=0.5, max_kernels=1))


def solved_with(trace: Trace, name: str, tools: Tools, options: Options, store: Store | None = None) -> RegionResult:
    (number,) = [n for n, region in enumerate(trace.regions) if region.function == name]
    job = RegionJob(
        number, trace.regions[number], Scope(()), HERE, tools, options, store, lambda: False, Path(trace.path)
    )
    steps = job.result()
    while True:
        try:
            next(steps)
        except StopIteration as end:
            return end.value
