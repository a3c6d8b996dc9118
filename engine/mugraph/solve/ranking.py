"""The candidates of one search unit, ranked and verified: one kernel first, then kernel graphs of several.

Part of the pipeline: what can be told is told as soon as it is found.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Generator, Mapping, Sequence
from dataclasses import dataclass

from mugraph.codegen.dynamic import check_dynamic
from mugraph.events import Another, Better, Event, FirstHit, Searching, SearchReport, Working
from mugraph.ir.block import BlockGraph, Candidate
from mugraph.ir.kernel import Rejected
from mugraph.ir.program import TensorProgram
from mugraph.ir.region import SearchUnit
from mugraph.ir.target import Target
from mugraph.options import Bounds
from mugraph.search.kernel_graphs.limits import GraphLimits
from mugraph.search.kernel_graphs.parts import Workers, by_estimate
from mugraph.search.kernel_graphs.run import KernelGraphs
from mugraph.search.schedules.diverse import diverse
from mugraph.search.schedules.split_schedules import kernel_candidates
from mugraph.search.topologies.limits import Limits, NotSearchable, Searcher
from mugraph.solve.trail import Trail
from mugraph.verify.verdict import Verdict
from mugraph.verify.verifier import verify_topologies, verify_topology

VERIFIED = 6
"""Distinct topologies, the best by estimate, that are verified and scheduled; the rest would not be chosen."""
TRIED = 24
"""Topologies verified at most: a search whose best two dozen are wrong has something worse than bad luck."""
GRAPHS = 0.25
"""Of the seconds of a search, the least that kernel graphs get, however many one kernel took."""

Begin = Callable[[TensorProgram, Limits, Callable[[], bool]], Searcher]
"""Program, limits and `cancelled` -> a search. Raises NotSearchable."""


@dataclass(frozen=True)
class Place:
    """Which search unit of which region events speak of. name: of the kernel."""

    region: int
    unit: int
    units: int
    function: str
    name: str


@dataclass(frozen=True)
class Ranked:
    """Candidates whose topologies passed, best first, with their verdicts (same position)."""

    candidates: tuple[tuple[Candidate, Verdict], ...]
    report: SearchReport
    reason: str | None = None


def ranked_candidates(
    unit: SearchUnit,
    place: Place,
    begin: Begin,
    target: Target,
    bounds: Bounds,
    trail: Trail,
    cancelled: Callable[[], bool],
    workers: Workers | None = None,
) -> Generator[Event, None, Ranked]:
    """Search one kernel and its schedules, then kernel graphs of several; the best topologies are verified.

    begin: a search. trail: is told of what passed. workers: who searches parts of kernel graphs beside this process
    """
    began = time.monotonic()
    program = unit.program
    yield Searching(place.region, place.unit, place.units, place.function)
    try:
        search = begin(program, Limits(bounds.max_ops, seconds=bounds.seconds), cancelled)
    except NotSearchable as error:
        return Ranked((), SearchReport(total_s=time.monotonic() - began, complete=False), str(error))
    blocks: list[BlockGraph] = []
    verdicts: dict[tuple[int, ...], Verdict] = {}  # of a candidate's topology
    early: dict[tuple[int, ...], Verdict] = {}  # of those looked at while the search runs; they decide nothing
    first: float | None = None
    told = began
    for found in search.run():
        blocks.append(found.block)
        if first is None:
            verdict = verdicts[(id(found.block.ops),)] = verify_topology(program, found.block)
            if verdict.passed:
                first = time.monotonic() - began
                yield FirstHit(place.region, place.unit, found.block, first)
        promising = trail.promising(found.block) if first is not None else None
        if promising is not None:
            key = promising.topology
            early[key] = verdicts[key] if key in verdicts else verify_topology(program, found.block)
            if early[key].passed:
                yield from _told(trail, place, promising)
        if time.monotonic() - told > 0.1:
            told = time.monotonic()
            yield Searching(place.region, place.unit, place.units, place.function, len(blocks), told - began)
    stats = search.stats
    every = kernel_candidates(blocks, target, uncut=program.least)
    best: Candidate | None = None
    for candidate in every:  # one that can be told of, before anything else is looked for
        if len(verdicts) >= TRIED:
            break
        yield Working(place.region, f"verifying {place.function}", 0, VERIFIED)
        if _verdict(program, candidate, verdicts, early).passed:
            best = candidate
            break
    if best is not None:
        if first is None:
            first = time.monotonic() - began
            yield FirstHit(place.region, place.unit, best.block, first)
        yield from _told(trail, place, best)
    graphs = KernelGraphs(
        program,
        target,
        GraphLimits.of(bounds.max_kernels, bounds.max_ops),
        cancelled,
        blocks=blocks,
        candidates=every,
        seconds=max(began + bounds.seconds - time.monotonic(), GRAPHS * bounds.seconds),
        workers=workers,
    )
    several: list[Candidate] = []
    for found in graphs.run():
        several += (candidate for candidate in found.candidates if _takes_any_size(candidate, program))
        yield Searching(place.region, place.unit, place.units, place.function, len(blocks), time.monotonic() - began)
        fastest = found.candidates[0]
        better = best is None or fastest.estimate_us < best.estimate_us
        if better and _takes_any_size(fastest, program) and _verdict(program, fastest, verdicts, early).passed:
            best = fastest
            if first is None:
                first = time.monotonic() - began
                yield FirstHit(place.region, place.unit, best.block, first)
            yield from _told(trail, place, best)
    if several:
        every = diverse(by_estimate([*every, *several]))
    passed: list[tuple[Candidate, Verdict]] = []
    good: set[tuple[int, ...]] = set()
    for candidate in every:
        key = candidate.topology
        if key not in verdicts:
            if len(good) >= VERIFIED or len(verdicts) >= TRIED:
                continue
            yield Working(place.region, f"verifying {place.function}", len(good), VERIFIED)
        verdict = _verdict(program, candidate, verdicts, early)
        if verdict.passed and (key in good or len(good) < VERIFIED):
            yield from _told(trail, place, candidate)
            good.add(key)
            passed.append((candidate, verdict))
    report = SearchReport(
        first,
        time.monotonic() - began,
        stats.topologies,
        len(every),
        stats.complete,
        stats.complete_to,
        stats.ended_by,
        stats.pruned,
    )
    return Ranked(tuple(passed), report, None if passed else _nothing(blocks, every, list(verdicts.values()), report))


def _takes_any_size(candidate: Candidate, program: TensorProgram) -> bool:
    try:
        for kernel in candidate.kernels:
            check_dynamic(kernel.block, program)
    except Rejected:
        return False
    return True


def _told(trail: Trail, place: Place, candidate: Candidate) -> Generator[Event, None, None]:
    met = trail.add(candidate)
    if met is not None:
        considered, better = met
        yield (Better if better else Another)(place.region, place.unit, place.name, considered)


def _verdict(
    program: TensorProgram,
    candidate: Candidate,
    known: dict[tuple[int, ...], Verdict],
    early: Mapping[tuple[int, ...], Verdict],
) -> Verdict:
    """Of a candidate's topology, verified once."""
    key = candidate.topology
    if key not in known:
        kernels = [(kernel.block, None) for kernel in candidate.kernels]
        known[key] = early.get(key) or verify_topologies(program, kernels)
    return known[key]


def _nothing(
    blocks: Sequence[BlockGraph], every: Sequence[Candidate], verdicts: Sequence[Verdict], report: SearchReport
) -> str:
    """Why there is no candidate, in one sentence."""
    if not blocks:
        end = f"all of up to {report.complete_to} operators were searched; it ended by {report.ended_by}"
        return f"no single kernel that computes it was found ({end})"
    if not every:
        return f"none of the {len(blocks)} kernels found fits on the device"
    wrong = next((verdict.reason for verdict in verdicts if not verdict.passed), None)
    return f"none of the kernels found passed verification ({wrong})"
