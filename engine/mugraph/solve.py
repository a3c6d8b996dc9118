"""One search unit, from tensor program to a verified kernel: search, verify, schedule, fuse, lower, test, measure.

Part of the pipeline: it calls rooms in order and decides nothing they can decide themselves.
"""

from __future__ import annotations

import contextlib
import time
from collections import Counter
from collections.abc import Callable, Generator, Mapping, Sequence
from dataclasses import dataclass, field, replace

from mugraph.codegen.kernel import KernelSource, Rejected
from mugraph.codegen.lower import lower_kernels
from mugraph.codegen.plain import FUNCTION, plain_source
from mugraph.codegen.resize import program_sizes, reduced_kernels
from mugraph.events import Another, Better, Event, FirstHit, PieceResult, Searching, SearchReport, Solution, Working
from mugraph.executors.executor import Executor
from mugraph.executors.spread import SpreadSearch
from mugraph.ir.block import BlockGraph, Candidate, Schedule
from mugraph.ir.mugraph import GraphKernel
from mugraph.ir.program import TensorProgram
from mugraph.ir.target import Target
from mugraph.optimizer.order import by_depth
from mugraph.optimizer.thread_fusion import fuse_threads
from mugraph.search.cost import estimate_library_us
from mugraph.search.limits import Limits, NotSearchable
from mugraph.search.neighbours import neighbours
from mugraph.search.run import Search
from mugraph.search.split_schedules import kernel_candidates
from mugraph.search.splits import COMBINE
from mugraph.store.keys import versions
from mugraph.trace.region import LaxPiece
from mugraph.trail import Trail
from mugraph.tune.compile_pool import CompilePool
from mugraph.tune.measure import Measurer
from mugraph.tune.messages import Subject
from mugraph.tune.process import Unavailable
from mugraph.tune.statistics import Summary
from mugraph.tune.tuner import MEASURED, Variant, input_specs, tune
from mugraph.verify.float_test import FloatResult, FloatTester
from mugraph.verify.sizes import resize
from mugraph.verify.verdict import Verdict
from mugraph.verify.verifier import verify_schedules, verify_topologies, verify_topology

VERIFIED = 6
"""Distinct topologies, the best by estimate, that are verified and scheduled; the rest would not be chosen."""
TRIED = 24
"""Topologies verified at most: a search whose best two dozen are wrong has something worse than bad luck."""
LARGEST_TILE = 32
"""Of kernels in the interpreter."""
FLOAT_TRIED = 6
"""Kernels tested in the interpreter at most, the best by estimate first, until one is right."""


@dataclass
class Tools:
    """What a run of the pipeline shares between search units.

    tester:   of the device kernels will run on, or the interpreter's
    executor: None searches here, a nest at a time
    compiled: it is the device's, where kernels run at full size
    measurer, pool: None where nothing is measured
    solved:   search units of this run, as the store keeps them, by their keys
    """

    target: Target
    tester: FloatTester
    compiled: bool = False
    measurer: Measurer | None = None
    pool: CompilePool | None = None
    executor: Executor | None = None
    solved: dict[str, Mapping[str, object]] = field(default_factory=dict[str, Mapping[str, object]])

    def begin(self) -> None:
        """Start the processes that will be needed, so that they import while a search runs."""
        self.tester.begin()
        if self.executor is not None:
            self.executor.begin()
        with contextlib.suppress(Unavailable):  # whoever asks it first is told
            if self.measurer is not None:
                self.measurer.begin()
            if self.pool is not None:
                self.pool.begin()

    def search(self, program: TensorProgram, limits: Limits, cancelled: Callable[[], bool]) -> Search | SpreadSearch:
        """Raises NotSearchable."""
        if self.executor is None:
            return Search(program, limits, cancelled)
        return SpreadSearch(program, limits, self.executor, cancelled)


@dataclass(frozen=True)
class Place:
    """Which search unit of which region events speak of. name: of the kernel."""

    region: int
    piece: int
    pieces: int
    function: str
    name: str


@dataclass(frozen=True)
class _Ranked:
    """Candidates whose topologies passed, best first, with their verdicts (same position)."""

    candidates: tuple[tuple[Candidate, Verdict], ...]
    report: SearchReport
    reason: str | None = None


def solve(
    piece: LaxPiece, place: Place, tools: Tools, seconds: float, cancelled: Callable[[], bool] = lambda: False
) -> Generator[Event, None, PieceResult]:
    """Events, then the result. Never raises for a program that has no good kernel: the result says why."""
    tools.begin()
    trail = Trail(tools.target)
    ranked = yield from _ranked(piece, place, tools, seconds, trail, cancelled)
    if not ranked.candidates:
        return PieceResult(piece, None, ranked.report, ranked.reason, kernel=place.name, considered=trail.considered)
    rejected: Counter[str] = Counter()
    variants = _lowered(
        ranked.candidates, place.name, tools.target, rejected, MEASURED if tools.measurer else FLOAT_TRIED
    )
    if not variants:
        reason = f"no candidate can be written as a kernel: {_most_common(rejected)}"
        return PieceResult(piece, None, ranked.report, reason, rejected, kernel=place.name, considered=trail.considered)
    library_us = estimate_library_us(piece.program, tools.target)
    if tools.measurer is not None:
        solution = yield from _measured(piece, place, tools, tools.measurer, variants, library_us, trail, rejected)
    else:
        solution = yield from _tested(piece, place, tools, variants, library_us, trail, rejected)
    reason = None if solution else f"no kernel passed the float test: {_most_common(rejected)}"
    return PieceResult(piece, solution, ranked.report, reason, rejected, kernel=place.name, considered=trail.considered)


def _ranked(
    piece: LaxPiece, place: Place, tools: Tools, seconds: float, trail: Trail, cancelled: Callable[[], bool]
) -> Generator[Event, None, _Ranked]:
    """Search, then the schedules of the best topologies, verified."""
    began = time.monotonic()
    program = piece.program
    yield Searching(place.region, place.piece, place.pieces, place.function)
    try:
        search = tools.search(program, Limits(seconds=seconds), cancelled)
    except NotSearchable as error:
        return _Ranked((), SearchReport(total_s=time.monotonic() - began, complete=False), str(error))
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
                yield FirstHit(place.region, place.piece, found.block, first)
        promising = trail.promising(found.block) if first is not None else None
        if promising is not None:
            key = promising.topology
            early[key] = verdicts[key] if key in verdicts else verify_topology(program, found.block)
            if early[key].passed:
                yield from _told(trail, place, promising)
        if time.monotonic() - told > 0.1:
            told = time.monotonic()
            yield Searching(place.region, place.piece, place.pieces, place.function, len(blocks), told - began)
    stats = search.stats
    every = kernel_candidates(blocks, tools.target)
    passed: list[tuple[Candidate, Verdict]] = []
    good: set[tuple[int, ...]] = set()
    for candidate in every:
        key = candidate.topology
        if key not in verdicts:
            if len(good) >= VERIFIED or len(verdicts) >= TRIED:
                continue
            yield Working(place.region, f"verifying {place.function}", len(good), VERIFIED)
            verdicts[key] = early.get(key) or verify_topologies(
                program, [(kernel.block, None) for kernel in candidate.kernels]
            )
        if not verdicts[key].passed:
            continue
        if first is None:
            first = time.monotonic() - began
            yield FirstHit(place.region, place.piece, candidate.block, first)
        yield from _told(trail, place, candidate)
        good.add(key)
        passed.append((candidate, verdicts[key]))
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
    return _Ranked(tuple(passed), report, None if passed else _nothing(blocks, every, list(verdicts.values()), report))


def _told(trail: Trail, place: Place, candidate: Candidate) -> Generator[Event, None, None]:
    met = trail.add(candidate)
    if met is not None:
        considered, better = met
        yield (Better if better else Another)(place.region, place.piece, place.name, considered)


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


def _lowered(
    ranked: Sequence[tuple[Candidate, Verdict]], name: str, target: Target, rejected: Counter[str], most: int
) -> list[tuple[Variant, Verdict]]:
    """The best candidates that can be written, renamed for their kernel."""
    variants: list[tuple[Variant, Verdict]] = []
    for candidate, verdict in ranked:
        try:
            variants.append((_variant(_named(candidate, name), target), verdict))
        except Rejected as error:
            rejected[str(error)] += 1
        if len(variants) == most:
            break
    return variants


def _named(candidate: Candidate, name: str) -> Candidate:
    """Its kernels renamed, the one that finishes it after it."""
    then = _named(candidate.then, f"{name}_{COMBINE}") if candidate.then is not None else None
    return replace(candidate, block=by_depth(replace(candidate.block, name=name)), then=then)


def _variant(candidate: Candidate, target: Target) -> Variant:
    """Raises codegen's Rejected."""
    return Variant(candidate, lower_kernels(_scheduled(candidate), target=target))


def _scheduled(candidate: Candidate) -> list[tuple[BlockGraph, Schedule]]:
    return [(kernel.block, kernel.schedule) for kernel in candidate.kernels]


def _measured(
    piece: LaxPiece,
    place: Place,
    tools: Tools,
    measurer: Measurer,
    variants: Sequence[tuple[Variant, Verdict]],
    library_us: float,
    trail: Trail,
    rejected: Counter[str],
) -> Generator[Event, None, Solution | None]:
    yield Working(place.region, f"measuring {place.name}", 0, len(variants))

    def around(variant: Variant) -> list[Variant]:
        found: list[Variant] = []
        for candidate in neighbours(variant.candidate, tools.target):
            with contextlib.suppress(Rejected):
                found.append(_variant(candidate, tools.target))
        return found

    ranked = [variant for variant, _ in variants]
    tuned = tune(piece.program, ranked, measurer, tools.tester, tools.pool, around=around)
    rejected.update(reason for _, reason in tuned.refused)
    for one, us in [*tuned.measured_us, *((one, summary.median_us) for one, summary, _ in tuned.times)]:
        yield Another(place.region, place.piece, place.name, trail.timed(one.candidate, us))
    if not tuned.times:
        return None
    variant, summary, tested = tuned.times[0]
    trail.chosen(variant.candidate)
    # A neighbour has its topology, and so its verdict, from where the walk began.
    verdict = next(verdict for other, verdict in variants if other.candidate.block is variant.candidate.block)
    verdict = _with_float(verdict, tested, dict(piece.program.sizes))
    plain_us = _plain_us(piece, measurer) if place.pieces > 1 else None
    return _solution(variant, variant.kernel, verdict, library_us, summary.median_us, plain_us)


def _plain_us(piece: LaxPiece, measurer: Measurer) -> float | None:
    """Microseconds of the piece as the user has it, eager; None where it cannot be run on its own."""
    try:
        text, values = plain_source(piece)
    except Rejected:
        return None
    names = {value: name for name, value in piece.inputs.items()}
    found = measurer.measure_kernel(
        Subject("plain", text, FUNCTION), input_specs(piece.program, [names[value] for value in values]), rounds=12
    )
    return found.median_us if isinstance(found, Summary) else None


def _tested(
    piece: LaxPiece,
    place: Place,
    tools: Tools,
    variants: Sequence[tuple[Variant, Verdict]],
    library_us: float,
    trail: Trail,
    rejected: Counter[str],
) -> Generator[Event, None, Solution | None]:
    """The best by estimate whose tiles are right over finite fields at reduced sizes, and whose kernel is: compiled, at
    full size, where its device is here, else in Triton's interpreter at the reduced ones (full ones take minutes)."""
    where = "on the device" if tools.compiled else "in Triton's interpreter"
    for number, (variant, verdict) in enumerate(variants):
        yield Working(place.region, f"testing {place.name} {where}", number, len(variants))
        kernels = _scheduled(variant.candidate)
        # Of two kernels one has small tiles, so many blocks, at the sizes that the other needs.
        kernels = reduced_kernels(kernels, largest_tile=LARGEST_TILE if len(kernels) == 1 else 16)
        program = resize(piece.program, program_sizes(piece.program, kernels))
        indexed = verify_schedules(program, kernels)
        if not indexed.passed:
            rejected[f"its tiles: {indexed.reason}"] += 1
            continue
        kernel = variant.kernel
        if tools.compiled:
            program = piece.program
        else:
            try:
                kernel = lower_kernels(kernels, target=tools.target)
            except Rejected as error:
                rejected[f"at reduced sizes: {error}"] += 1
                continue
        tested = tools.tester.test_kernel(kernel, program)
        if tested.passed:
            verdict = _with_float(verdict, tested, dict(program.sizes))
            trail.chosen(variant.candidate)
            return _solution(variant, variant.kernel, verdict, library_us, None)
        rejected[tested.reason or f"wrong {where}"] += 1
    return None


def _with_float(verdict: Verdict, tested: FloatResult, sizes: dict[str, int]) -> Verdict:
    return replace(
        verdict,
        max_rel_error=tested.max_rel_error,
        eager_rel_error=tested.eager_rel_error,
        float_sizes=sizes,
        float_device=tested.device,
        versions=versions(),
    )


def _solution(
    variant: Variant,
    source: KernelSource,
    verdict: Verdict,
    library_us: float,
    measured_us: float | None,
    plain_us: float | None = None,
) -> Solution:
    kernel, *then = (
        GraphKernel(one.block.name, one.block, one.schedule, fuse_threads(one.block))
        for one in variant.candidate.kernels
    )
    estimate_us = variant.candidate.estimate_us
    return Solution(kernel, source, verdict, estimate_us, library_us, measured_us, plain_us, tuple(then))


def _most_common(reasons: Counter[str]) -> str:
    return reasons.most_common(1)[0][0] if reasons else "no reason was given"
