"""A file's way: traced, each region solved (solve/job.py), the results put together.

`run` yields events and ends with Done. It reads files and starts processes; it writes nothing but the store.
"""

from __future__ import annotations

import contextlib
import time
from collections.abc import Callable, Collection, Generator, Iterator, Sequence
from dataclasses import replace
from pathlib import Path

from mugraph import one_thread, sharing
from mugraph.beginning import beginning
from mugraph.edit.module.evidence import Speed
from mugraph.edit.module.file import module_text
from mugraph.events import Done, Event, FileResult, RegionDone, RegionResult, Traced
from mugraph.executors.choose import choose
from mugraph.executors.processes import Processes
from mugraph.giving_up import GivingUp
from mugraph.ir.kernel import KernelSource, Rejected
from mugraph.ir.names import Scope
from mugraph.ir.region import Trace
from mugraph.ir.shares import largest_first, recorded_calls
from mugraph.memory.traced_ways import with_other_ways
from mugraph.memory.traces import traced
from mugraph.options import Options
from mugraph.plans.covered import left_out
from mugraph.plans.plan import RegionPlan
from mugraph.recording.runs import Runs
from mugraph.recording.withheld import withhold
from mugraph.scratch import inside, scratch
from mugraph.search.topologies.limits import never
from mugraph.sizes.timing import ratios
from mugraph.solve.filetime import FileTime
from mugraph.solve.first_answers import begun, first_answers
from mugraph.solve.job import RegionJob
from mugraph.solve.programs import Programs
from mugraph.solve.side_by_side import side_by_side
from mugraph.solve.together import processors
from mugraph.solve.tools import Tools
from mugraph.store import Store
from mugraph.targets import Target
from mugraph.trace.syntax.callers import Callers
from mugraph.trace.syntax.source import read_source
from mugraph.tune.compile_pool import CompilePool
from mugraph.tune.device import Device
from mugraph.tune.measure import Measurer
from mugraph.tune.peers import Peers
from mugraph.tune.process import BEHIND, CHILD, COMPILER, ChildProcess
from mugraph.tune.spread import SpreadMeasurer
from mugraph.verification.float_test import FloatTester

__all__ = ["Options", "improved", "preview_text", "run", "run_trace", "working"]


def run(
    path: Path,
    qualname: str | None = None,
    options: Options | None = None,
    *,
    source: str | None = None,
    runs: Runs | None = None,
    store: Store | None = None,
    cancelled: Callable[[], bool] = never,
    tools: Tools | None = None,
    taken: Sequence[str] = (),
    file_budget_s: Callable[[Trace], float] | None = None,
    callers: Callers | None = None,
    places: Collection[str] | None = None,
) -> Iterator[Event]:
    """Optimise a file. source: its text if it is not what the disk holds. runs: what was recorded of its functions,
    which are traced for each way in which they were called; a region whose kernel would take none of the calls is not
    searched. store: None keeps nothing. tools: of a run over several files; None: its own. taken: as of `run_trace`.
    callers: files whose runs say how this one is called, as of `trace_file`. places: of the regions that count
    file_budget_s: of a run over several files, the seconds of this one, once it is traced; None: as the options have it

    Raises tune.device.UnknownTarget and executors.executor.CannotExecute; everything the file itself is to blame for is
    in Done's result.
    """
    options, runs = options or Options(), runs or Runs()
    with beginning(options, working, tools) as begun:
        began = time.monotonic()
        trace = traced(
            path,
            source=source,
            qualname=qualname,
            recorded_shapes=runs.shapes,
            pictures=runs.pictures,
            callers=callers,
            timeout_s=options.trace_timeout_s,
            store=store,
            beginning=begun.soon,
        )
        if places is not None:
            trace = replace(trace, regions=tuple(region for region in trace.regions if region.place in places))
        text = source
        with contextlib.suppress(
            OSError, UnicodeDecodeError, SyntaxError
        ):  # the trace says what is wrong with the file
            text = read_source(path) if source is None else source
        programs = Programs()
        if text is not None:
            found = with_other_ways(
                trace, path, text, runs, qualname=qualname, timeout_s=options.trace_timeout_s, store=store
            )
            trace, programs = found.trace, Programs.of(text, runs, found.ways)
        ready = begun.ready()
        if text is not None:
            trace = withhold(trace, text, runs.calls, gpu=ready.device.kind == "gpu")
        traced_s = time.monotonic() - began
        yield Traced(trace, traced_s)
        if file_budget_s is not None:
            options = replace(options, file_budget_s=file_budget_s(trace))
        yield from run_trace(
            trace,
            ready.device,
            ready.target,
            options,
            store,
            cancelled,
            taken,
            programs=programs,
            tools=ready.tools,
            traced_s=traced_s,
        )


def run_trace(
    trace: Trace,
    device: Device,
    target: Target,
    options: Options,
    store: Store | None = None,
    cancelled: Callable[[], bool] = never,
    taken: Sequence[str] = (),
    programs: Programs | None = None,
    tools: Tools | None = None,
    traced_s: float = 0.0,
) -> Iterator[Event]:
    """Optimise what was traced, what takes most of a recorded run first.

    taken: names of plans and kernels the file has already. programs: the file's text, to time what it will call; None:
    without the guards of its own objects. tools: of a run that has begun; None: its own. traced_s: seconds of tracing
    that count against the file's, where a person has waited for them

    Raises executors.executor.CannotExecute.
    """
    names, programs = Scope(taken), programs or Programs()
    found: dict[int, RegionResult] = {}
    with contextlib.nullcontext(tools) if tools is not None else working(device, target, options) as tools:
        path, order = Path(trace.path), largest_first(range(len(trace.regions)), trace.shares)
        tools.file_time, tools.run_number = (
            FileTime(options.file_budget_s, waited_s=sharing.waited_s),
            tools.run_number + 1,
        )
        tools.file_time.traced(traced_s)
        with side_by_side(tools) as units:
            jobs = [
                RegionJob(number, trace.regions[number], names, device, tools, options, store, cancelled, path,
                          program=programs.at(number), together=units, calls=recorded_calls(number, trace.shares))
                for number in order
            ]  # fmt: skip
            with tools.file_time.counting():
                begun(jobs, units)
            if units is not None:
                yield from first_answers(jobs, units)
            for job in jobs:
                result = yield from job.result()
                found[job.number] = result
                yield RegionDone(job.number, result)
    results = with_left_out([found[number] for number in range(len(trace.regions))])
    errors, preview = list(trace.errors), None
    try:
        preview = preview_text(results, Path(trace.path), target)
    except Rejected as error:
        errors.append(f"the kernel module cannot be written: {error}")
    device = replace(device, target=target)
    yield Done(FileResult(trace.path, device, tuple(results), tuple(errors), preview, trace.shares))


@contextlib.contextmanager
def working(device: Device, target: Target, options: Options, giving_up: GivingUp | None = None) -> Generator[Tools]:
    """What a run works with; its processes end with it. giving_up: what they are asked is given up while it is on.
    Raises executors.executor.CannotExecute."""
    here = device.kind == "gpu" and target.capability == device.capability  # the kernels can run
    with contextlib.ExitStack() as stack:
        tester = stack.enter_context(FloatTester("cuda" if here else "interpreter", giving_up=giving_up))
        tools = Tools(target, tester, compiled=here, compare_with=options.compare_with, timed_peers=options.peers)
        tester.spent = tools.spent
        if options.executor != "inline":
            tools.executor = stack.enter_context(contextlib.closing(choose(options.executor)))
        if here and options.measure:

            def child(command: tuple[str, ...]) -> Callable[[], ChildProcess]:
                return lambda: ChildProcess(command, giving_up=giving_up)

            tools.measurer = stack.enter_context(_measurer(tools, stack, child(CHILD)))
            tools.pool = stack.enter_context(CompilePool(child(BEHIND)))
            tools.peers = stack.enter_context(contextlib.closing(Peers(Measurer(child(COMPILER)))))
            tools.measurer.spent = tools.pool.spent = tools.peers.measurer.spent = tools.spent
        workers = _side_by_side(tools)
        if workers:
            folder = stack.enter_context(scratch("units"))  # what they leave behind is removed
            threads = max(1, sharing.processors() // sharing.beside() // workers)
            environment = one_thread.beside_others(inside(folder), threads)
            tools.units = stack.enter_context(contextlib.closing(Processes(workers, environment=environment)))
        yield tools


def _side_by_side(tools: Tools) -> int:
    """Search units at a time: none but here where an executor spreads each search already, and where kernels run on a
    device and are not measured."""
    if tools.executor is not None:
        return 0
    if tools.measurer is not None:
        return processors()
    return processors() if not tools.compiled and processors() > 1 else 0


def _measurer(tools: Tools, stack: contextlib.ExitStack, child: Callable[[], ChildProcess]) -> Measurer:
    """Measures on the executor's GPUs as well, if it has any."""
    gpus = tools.executor.on_gpus() if tools.executor is not None else None
    return SpreadMeasurer(stack.enter_context(contextlib.closing(gpus)), child) if gpus is not None else Measurer(child)


def _is_offered(result: RegionResult) -> bool:
    return result.status == "improved" and result.plan is not None


def with_left_out(results: Sequence[RegionResult]) -> list[RegionResult]:
    """The results; of improved ones that are not written, why."""
    at = [number for number, result in enumerate(results) if _is_offered(result)]
    said = {at[number]: why for number, why in left_out([results[number].region for number in at]).items()}
    return [replace(result, reason=said.get(number, result.reason)) for number, result in enumerate(results)]


def improved(results: Sequence[RegionResult]) -> tuple[list[RegionPlan], dict[str, KernelSource], dict[str, Speed]]:
    """What the kernel module is written from: plans, kernels and speeds of the improved regions, without those that are
    left out."""
    plans: list[RegionPlan] = []
    sources: dict[str, KernelSource] = {}
    speeds: dict[str, Speed] = {}
    offered = [result for result in results if _is_offered(result)]
    without = left_out([result.region for result in offered])
    for number, result in enumerate(offered):
        if number not in without and result.plan is not None:
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
