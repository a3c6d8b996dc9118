"""`mugraph bench search [PROGRAMS]`: how long the search takes on the papers' programs, and whether it finds what the
papers found."""

from __future__ import annotations

import contextlib
import time
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import partial
from itertools import chain
from pathlib import Path

from rich.console import Console

from mugraph.commands.common import FAILED, OK, WrongUsage, print_json, say_error
from mugraph.commands.forms import Form
from mugraph.commands.papers import PROGRAMS, Paper
from mugraph.events import SearchReport
from mugraph.executors.choose import choose
from mugraph.executors.executor import CannotExecute, Executor
from mugraph.executors.spread import SpreadSearch
from mugraph.ir.block import BlockGraph, Candidate, Schedule
from mugraph.ir.program import TensorProgram
from mugraph.ir.region import SearchUnit, Trace
from mugraph.search.kernel_graphs.run import KernelGraphs
from mugraph.search.run import Search
from mugraph.search.schedules.split_schedules import kernel_candidates
from mugraph.search.schedules.splits import cuts, part_counts
from mugraph.search.topologies.limits import Limits, NotSearchable
from mugraph.targets import Target
from mugraph.trace.tracer import trace_file
from mugraph.tune.device import detect, resolve
from mugraph.units.search_units import single_units
from mugraph.verification.verifier import verify_topologies, verify_topology

_TRIES = 4
"""Matches of a form that are verified, until one passes."""
_PLAIN = partial(Console, highlight=False, soft_wrap=True)


@dataclass(frozen=True)
class Result:
    """named:   forms of the papers that are among what was found, and passed verification
    unnamed: the other forms
    cpu_s:   seconds of processor time in `search.total_s`: what it would be on an idle machine
    """

    search: SearchReport
    cpu_s: float
    named: tuple[str, ...]
    unnamed: tuple[str, ...]


def bench_search(names: Sequence[str], folder: Path, budget_s: float, executor: str, *, as_json: bool) -> int:
    """Exit status: 1 where a program could not be searched. names: of programs, all for none. Raises WrongUsage."""
    chosen = programs_called(names)
    if not folder.is_dir():
        raise WrongUsage(f"there are no samples in {folder}; say where they are with --samples")
    try:
        with contextlib.closing(choose(executor)) as working:
            working.begin()
            return _bench(chosen, folder, budget_s, None if executor == "inline" else working, as_json)
    except CannotExecute as error:
        raise WrongUsage(str(error)) from None


def _bench(chosen: Mapping[str, Paper], folder: Path, budget_s: float, executor: Executor | None, as_json: bool) -> int:
    target = resolve("auto", detect())
    traces: dict[str, Trace] = {}
    results: dict[str, Result] = {}
    for name, paper in chosen.items():
        if paper.file not in traces:
            traces[paper.file] = trace_file(folder / f"{paper.file}.py")
        programs = list(searched_in(traces[paper.file], paper))
        if not programs:
            errors = traces[paper.file].errors
            say_error(errors[0] if errors else f"nothing in {paper.file}.py is a {paper.function} to search")
            continue
        try:
            results[name] = together(
                [searched(program, paper.forms, target, budget_s, executor) for program in programs]
            )
        except NotSearchable as error:
            say_error(f"{name}: {error}")
            continue
        if not as_json:
            _print(name, results[name], heading=len(results) == 1)
    if as_json:
        print_json({"programs": [{"name": name, **row(result)} for name, result in results.items()]})
    return OK if len(results) == len(chosen) else FAILED


def programs_called(names: Sequence[str]) -> Mapping[str, Paper]:
    """Case does not matter. Raises WrongUsage."""
    known = {name.lower(): name for name in PROGRAMS}
    unknown = [name for name in names if name.lower() not in known]
    if unknown:
        raise WrongUsage(f"no program is called {', '.join(unknown)}; there are {', '.join(PROGRAMS)}")
    return {known[name.lower()]: PROGRAMS[known[name.lower()]] for name in names} if names else PROGRAMS


def searched_in(trace: Trace, paper: Paper) -> Iterator[TensorProgram]:
    """The programs the pipeline would search for the paper's function."""
    for region in trace.regions:
        if region.function == paper.function and region.status is None:
            yield from (unit.program for unit in single_units(region) if isinstance(unit, SearchUnit))


def searched(
    program: TensorProgram, forms: Sequence[Form], target: Target, budget_s: float, executor: Executor | None
) -> Result:
    """Search, verify the first hit, schedule, and kernel graphs; then look for the forms, which is not timed.

    Raises NotSearchable.
    """
    began, began_cpu = time.monotonic(), time.process_time()
    limits = Limits(seconds=budget_s)
    search = Search(program, limits) if executor is None else SpreadSearch(program, limits, executor)
    first: float | None = None
    blocks: list[BlockGraph] = []
    for found in search.run():
        blocks.append(found.block)
        if first is None and verify_topology(program, found.block).passed:
            first = time.monotonic() - began
    candidates = kernel_candidates(blocks, target)
    left = budget_s - (time.monotonic() - began)
    graphs = KernelGraphs(program, target, blocks=blocks, candidates=candidates, seconds=left)
    several = [found.candidates for found in graphs.run()]
    candidates += [candidate for found in several for candidate in found]
    spent, cpu, stats = time.monotonic() - began, time.process_time() - began_cpu, search.stats
    report = SearchReport(
        first,
        spent,
        stats.topologies,
        len(candidates),
        stats.complete,
        stats.complete_to,
        stats.ended_by,
        stats.pruned,
    )
    chains = [tuple(kernel.block for kernel in found[0].kernels) for found in several]
    named = tuple(form.name for form in forms if is_among(form, program, blocks, chains, candidates))
    return Result(report, cpu, named, tuple(form.name for form in forms if form.name not in named))


def is_among(
    form: Form,
    program: TensorProgram,
    blocks: Sequence[BlockGraph],
    graphs: Sequence[tuple[BlockGraph, ...]] = (),
    candidates: Sequence[Candidate] = (),
) -> bool:
    """Is a topology, a split of one, or a kernel graph of this form and equal to the program? Of a form that says how
    axes are packed: a candidate, cut into blocks as its schedule cuts it."""
    tried = 0
    for kernels in _looked_at(form, blocks, graphs, candidates):
        graph = [block for block, _ in kernels]
        schedules = [schedule for _, schedule in kernels if schedule is not None]
        if not form.matches(graph, schedules):
            continue
        cut = [(block, [axis for axis, _ in schedule.grid] if schedule else None) for block, schedule in kernels]
        if verify_topologies(program, cut).passed:
            return True
        tried += 1
        if tried == _TRIES:
            return False
    return False


def _looked_at(
    form: Form,
    blocks: Sequence[BlockGraph],
    graphs: Sequence[tuple[BlockGraph, ...]],
    candidates: Sequence[Candidate],
) -> Iterator[list[tuple[BlockGraph, Schedule | None]]]:
    if form.packed:
        for candidate in candidates:
            yield [(kernel.block, kernel.schedule) for kernel in candidate.kernels]
        return
    for kernels in chain(graphs, split(blocks)) if form.handed else ((block,) for block in blocks):
        yield [(block, None) for block in kernels]


def split(blocks: Sequence[BlockGraph]) -> Iterator[tuple[BlockGraph, BlockGraph]]:
    """Every split of every topology, in the most parts."""
    for block in blocks:
        for cut in cuts(block):
            counts = part_counts(block.sizes[cut.axis])
            if counts:
                yield cut.at(counts[-1])


def together(results: Sequence[Result]) -> Result:
    """Of the search units of one program."""
    report = results[0].search
    for result in results[1:]:
        report = report + result.search
    named = {name for result in results for name in result.named}
    wanted = (*results[0].named, *results[0].unnamed)
    found = tuple(name for name in wanted if name in named)
    missing = tuple(name for name in wanted if name not in named)
    return Result(report, sum(result.cpu_s for result in results), found, missing)


def row(result: Result) -> dict[str, object]:
    report = result.search
    return {
        "first_verified_s": report.first_verified_s,
        "total_s": report.total_s,
        "topologies": report.topologies,
        "candidates": report.candidates,
        "complete": report.complete,
        "named": list(result.named),
    }


def _print(name: str, result: Result, *, heading: bool) -> None:
    """A line as soon as a program is done, and one for each form."""
    console, report = _PLAIN(), result.search
    if heading:
        times = f"{'first verified':>15}{'total':>9}{'processor':>11}"
        console.print(f"{'program':<10}{times}{'topologies':>12}{'candidates':>12}  ended by")
    first = "-" if report.first_verified_s is None else f"{report.first_verified_s:.2f} s"
    ending = f"{report.ended_by}, {'' if report.complete else 'only '}complete to {report.complete_to} operators"
    times = f"{first:>15}{report.total_s:>7.1f} s{result.cpu_s:>9.1f} s"
    console.print(f"{name:<10}{times}{report.topologies:>12}{report.candidates:>12}  {ending}")
    for form in result.named:
        console.print(f"{'':<10}found: {form}", markup=False)
    for form in result.unnamed:
        console.print(f"{'':<10}not found: {form}", markup=False)
