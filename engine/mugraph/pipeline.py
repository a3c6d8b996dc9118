"""A file's way: traced, each region solved (solve/job.py), the results put together.

`run` yields events and ends with Done. It reads files and starts processes; it writes nothing but the store.
"""

from __future__ import annotations

import contextlib
import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import replace
from pathlib import Path

from mugraph.edit.module.evidence import Speed
from mugraph.edit.module.file import module_text
from mugraph.events import Done, Event, FileResult, RegionDone, RegionResult, Traced
from mugraph.executors.choose import choose
from mugraph.ir.kernel import KernelSource, Rejected
from mugraph.ir.names import Scope
from mugraph.ir.region import Trace
from mugraph.ir.shares import Share, largest_first
from mugraph.memory.traces import recall_trace, remember_trace, trace_key
from mugraph.options import Options
from mugraph.plans.plan import RegionPlan
from mugraph.recording.regions import shared
from mugraph.search.topologies.limits import never
from mugraph.sizes.timing import ratios
from mugraph.solve.job import RegionJob
from mugraph.solve.tools import Tools
from mugraph.store import Store
from mugraph.targets import Target
from mugraph.trace.picture import Picture
from mugraph.trace.run.entries import RecordedShapes
from mugraph.trace.syntax.source import read_source
from mugraph.trace.tracer import trace_file
from mugraph.tune.compile_pool import CompilePool
from mugraph.tune.device import Device, detect, resolve
from mugraph.tune.measure import Measurer
from mugraph.tune.spread import SpreadMeasurer
from mugraph.verify.float_test import FloatTester

__all__ = ["Options", "improved", "preview_text", "run", "run_trace"]


def run(
    path: Path,
    qualname: str | None = None,
    options: Options | None = None,
    *,
    source: str | None = None,
    recorded_shapes: RecordedShapes | None = None,
    pictures: Mapping[str, Picture] | None = None,
    shares: Mapping[str, Share] | None = None,
    store: Store | None = None,
    cancelled: Callable[[], bool] = never,
) -> Iterator[Event]:
    """Optimise a file. source: its text if it is not what the disk holds. recorded_shapes, pictures, shares: what was
    recorded of its functions. store: None keeps nothing.

    Raises tune.device.UnknownTarget and executors.executor.CannotExecute; everything the file itself is to blame for is
    in Done's result.
    """
    options = options or Options()
    device = detect()
    target = resolve(options.target, device)
    began = time.monotonic()
    trace = _traced(path, qualname, options, source, recorded_shapes, pictures, store)
    if shares:
        with contextlib.suppress(OSError, UnicodeDecodeError, SyntaxError):  # then nothing was traced either
            trace = shared(trace, shares, read_source(path) if source is None else source)
    yield Traced(trace, time.monotonic() - began)
    yield from run_trace(trace, device, target, options, store, cancelled)


def _traced(
    path: Path,
    qualname: str | None,
    options: Options,
    source: str | None,
    recorded_shapes: RecordedShapes | None,
    pictures: Mapping[str, Picture] | None,
    store: Store | None,
) -> Trace:
    """The trace that the store has, or a new one, which is stored."""
    key = None
    if store is not None:
        with contextlib.suppress(OSError, UnicodeDecodeError, SyntaxError):  # tracing says what is wrong with the file
            text = read_source(path) if source is None else source
            key = trace_key(path, text, qualname, recorded_shapes, pictures)
            known = recall_trace(store, key)
            if known is not None:
                return known
    trace = trace_file(
        path,
        source=source,
        qualname=qualname,
        recorded_shapes=recorded_shapes,
        pictures=pictures,
        timeout_s=options.trace_timeout_s,
    )
    if store is not None and key is not None:
        remember_trace(store, key, trace)
    return trace


def run_trace(
    trace: Trace,
    device: Device,
    target: Target,
    options: Options,
    store: Store | None = None,
    cancelled: Callable[[], bool] = never,
    taken: Sequence[str] = (),
) -> Iterator[Event]:
    """Optimise what was traced, what takes most of a recorded run first. taken: names of plans and kernels the file has
    already.

    Raises executors.executor.CannotExecute.
    """
    names = Scope(taken)
    found: dict[int, RegionResult] = {}
    here = device.kind == "gpu" and target.capability == device.capability  # the kernels can run
    with contextlib.ExitStack() as stack:
        tester = stack.enter_context(FloatTester("cuda" if here else "interpreter"))
        tools = Tools(target, tester, compiled=here)
        if options.executor != "inline":
            tools.executor = stack.enter_context(contextlib.closing(choose(options.executor)))
        if here and options.measure:
            tools.measurer = stack.enter_context(_measurer(tools, stack))
            tools.pool = stack.enter_context(CompilePool())
        for number in largest_first(range(len(trace.regions)), trace.shares):
            region = trace.regions[number]
            job = RegionJob(number, region, names, device, tools, options, store, cancelled, Path(trace.path))
            result = yield from job.result()
            found[number] = result
            yield RegionDone(number, result)
    results = [found[number] for number in range(len(trace.regions))]
    errors, preview = list(trace.errors), None
    try:
        preview = preview_text(results, Path(trace.path), target)
    except Rejected as error:
        errors.append(f"the kernel module cannot be written: {error}")
    device = replace(device, target=target)
    yield Done(FileResult(trace.path, device, tuple(results), tuple(errors), preview, trace.shares))


def _measurer(tools: Tools, stack: contextlib.ExitStack) -> Measurer:
    """Measures on the executor's GPUs as well, if it has any."""
    gpus = tools.executor.on_gpus() if tools.executor is not None else None
    return SpreadMeasurer(stack.enter_context(contextlib.closing(gpus))) if gpus is not None else Measurer()


def improved(results: Sequence[RegionResult]) -> tuple[list[RegionPlan], dict[str, KernelSource], dict[str, Speed]]:
    """What the kernel module is written from: plans, kernels and speeds of the improved regions."""
    plans: list[RegionPlan] = []
    sources: dict[str, KernelSource] = {}
    speeds: dict[str, Speed] = {}
    for result in results:
        if result.status == "improved" and result.plan is not None:
            plans.append(result.plan)
            sources.update(result.sources)
            if result.timing.speedup is not None:
                place = f"{result.timing.device}, {result.timing.method}".strip(", ")
                at = ratios(result.region, result.timing)
                speeds[result.plan.name] = Speed(result.timing.speedup, result.timing.source, place, at)
    return plans, sources, speeds


def preview_text(results: Sequence[RegionResult], path: Path, target: Target) -> str | None:
    """The kernel module for the improved regions; None without any. Raises codegen's Rejected."""
    plans, sources, speeds = improved(results)
    if not plans:
        return None
    return module_text(plans, sources, original_path=path, target=target, speeds=speeds)
