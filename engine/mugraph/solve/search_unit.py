"""One search unit, from tensor program to a verified kernel: search, verify, schedule, fuse, lower, test, measure.

Part of the pipeline: it calls rooms in order and decides nothing they can decide themselves.
"""

from __future__ import annotations

import contextlib
from collections import Counter
from collections.abc import Callable, Generator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from math import inf

from mugraph.codegen.lower import lower_kernels
from mugraph.codegen.plain import FUNCTION, plain_source
from mugraph.events import Another, Event, Solution, UnitResult, Working
from mugraph.executors.executor import Executor
from mugraph.executors.parts import SpreadParts
from mugraph.executors.spread import SpreadSearch
from mugraph.ir.block import BlockGraph, Candidate, Schedule
from mugraph.ir.kernel import KernelSource, Rejected
from mugraph.ir.names import Scope
from mugraph.ir.ops import Kind
from mugraph.ir.program import TensorProgram
from mugraph.ir.region import SearchUnit
from mugraph.ir.target import Target
from mugraph.ir.transforms.reduced import program_sizes, reduced_kernels
from mugraph.ir.transforms.resizing import resize
from mugraph.optimizer.nodes import node_of, scheduled
from mugraph.optimizer.order import by_depth
from mugraph.options import Bounds
from mugraph.search.kernel_graphs.several import SeveralSearch
from mugraph.search.run import Search
from mugraph.search.schedules.cost import estimate_library_us
from mugraph.search.schedules.neighbours import neighbours
from mugraph.search.schedules.splits import COMBINE
from mugraph.search.topologies.limits import Limits, Searcher
from mugraph.sizes.choice import Chosen, by_sizes
from mugraph.sizes.indexed import indexed
from mugraph.sizes.search_unit import estimates_at
from mugraph.sizes.table import SizeTable, at_step, sizes_at, step_of, tested_steps
from mugraph.sizes.tuning import tested_at_sizes, tuned_sizes
from mugraph.solve.ranking import Place, ranked_candidates
from mugraph.solve.trail import Trail
from mugraph.store.keys import versions
from mugraph.tune.compile_pool import CompilePool
from mugraph.tune.measure import Measurer
from mugraph.tune.messages import InputSpec, Subject
from mugraph.tune.process import Unavailable
from mugraph.tune.statistics import Summary
from mugraph.tune.tuner import MEASURED, Variant, input_specs, subject_of, tune
from mugraph.verify.float_test import FloatResult, FloatTester
from mugraph.verify.verdict import Verdict
from mugraph.verify.verifier import verify_schedules
from mugraph.verify.weights import summing_as_at_full_size

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

    @property
    def workers(self) -> SpreadParts | None:
        """Who works on parts of kernel graphs."""
        return SpreadParts(self.executor) if self.executor is not None else None

    def search(self, program: TensorProgram, limits: Limits, cancelled: Callable[[], bool]) -> Searcher:
        """Raises NotSearchable."""
        if len(program.outputs) > 1:
            return SeveralSearch(program, limits, cancelled, self._search)
        return self._search(program, limits, cancelled)

    def _search(self, program: TensorProgram, limits: Limits, cancelled: Callable[[], bool]) -> Searcher:
        if self.executor is None:
            return Search(program, limits, cancelled)
        return SpreadSearch(program, limits, self.executor, cancelled)


def solve(
    unit: SearchUnit,
    place: Place,
    tools: Tools,
    bounds: Bounds,
    cancelled: Callable[[], bool] = lambda: False,
    *,
    smaller: Sequence[SearchUnit] = (),
) -> Generator[Event, None, UnitResult]:
    """Events, then the result. Never raises for a program that has no good kernel: the result says why.

    smaller: of a size in a range, the unit at others than the largest, at which its kernel may pay as well
    """
    tools.begin()
    trail = Trail(tools.target)
    ranked = yield from ranked_candidates(
        unit, place, tools.search, tools.target, bounds, trail, cancelled, tools.workers
    )
    if not ranked.candidates:
        return UnitResult(unit, None, ranked.report, ranked.reason, kernel=place.name, considered=trail.considered)
    rejected: Counter[str] = Counter()
    most = MEASURED if tools.measurer else FLOAT_TRIED
    table = SizeTable(unit.program, tools.target, _outputs(unit.program))
    variants = _lowered(
        table.ranked(ranked.candidates), table, place.name, rejected, most, measured=bool(tools.measurer)
    )
    if not variants:
        reason = f"no candidate can be written as a kernel: {_most_common(rejected)}"
        return UnitResult(unit, None, ranked.report, reason, rejected, kernel=place.name, considered=trail.considered)
    library_us = estimate_library_us(unit.program, tools.target)
    if tools.measurer is not None:
        solution = yield from _measured(
            unit, place, tools, tools.measurer, variants, library_us, trail, rejected, table, smaller
        )
    else:
        solution = yield from _tested(unit, place, tools, variants, library_us, trail, rejected)
    if solution is not None and not solution.pays:
        solution = replace(solution, pays_smaller=any(_pays_at(small, solution, tools) for small in smaller))
    reason = None if solution else f"no kernel passed the float test: {_most_common(rejected)}"
    return UnitResult(unit, solution, ranked.report, reason, rejected, kernel=place.name, considered=trail.considered)


def _lowered(
    ranked: Sequence[tuple[Candidate, Verdict]],
    table: SizeTable,
    name: str,
    rejected: Counter[str],
    most: int,
    *,
    measured: bool,
) -> list[tuple[Variant, Verdict]]:
    """The best candidates that can be written, renamed for their kernel. measured: what is best at other sizes than the
    largest will be, so it is not estimated"""
    variants: list[tuple[Variant, Verdict]] = []
    for candidate, verdict in ranked:
        try:
            named = _named(candidate, name)
            kernel = table.lowered(_scheduled(named)) if measured else table.source(_scheduled(named))
            variants.append((Variant(named, kernel), verdict))
        except Rejected as error:
            rejected[str(error)] += 1
        if len(variants) == most:
            break
    return variants


def _named(candidate: Candidate, name: str) -> Candidate:
    """Its kernels renamed: those after the first by what they finish, or by the value they compute."""
    taken = Scope([name])

    def renamed(kernel: Candidate, own: str) -> Candidate:
        then = None
        if kernel.then is not None:
            block = kernel.then.block
            finishes = block.name == f"{kernel.block.name}_{COMBINE}"
            stored = next(op.inputs[0] for op in block.ops if op.kind is Kind.STORE)
            then = renamed(kernel.then, taken.unique(f"{own}_{COMBINE}" if finishes else f"{name}_{stored}"))
        block = replace(kernel.block, name=own)
        return replace(kernel, block=block if kernel.schedule.library else by_depth(block), then=then)

    return renamed(candidate, name)


def _outputs(program: TensorProgram) -> list[str]:
    return [tensor.name for tensor in program.outputs.values()]


def _scheduled(candidate: Candidate) -> list[tuple[BlockGraph, Schedule]]:
    return [(kernel.block, kernel.schedule) for kernel in candidate.kernels]


def _measured(
    unit: SearchUnit,
    place: Place,
    tools: Tools,
    measurer: Measurer,
    variants: Sequence[tuple[Variant, Verdict]],
    library_us: float,
    trail: Trail,
    rejected: Counter[str],
    table: SizeTable,
    smaller: Sequence[SearchUnit],
) -> Generator[Event, None, Solution | None]:
    yield Working(place.region, f"measuring {place.name}", 0, len(variants))

    def around(variant: Variant) -> list[Variant]:
        found: list[Variant] = []
        for candidate in neighbours(variant.candidate, tools.target):
            with contextlib.suppress(Rejected):
                found.append(Variant(candidate, table.lowered(_scheduled(candidate))))
        return found

    ranked = [variant for variant, _ in variants]
    tuned = tune(unit.program, ranked, measurer, tools.tester, tools.pool, around=around)
    rejected.update(reason for _, reason in tuned.refused)
    for one, us in [*tuned.measured_us, *((one, summary.median_us) for one, summary, _ in tuned.times)]:
        yield Another(place.region, place.unit, place.name, trail.timed(one.candidate, us))
    fastest: Sequence[Chosen] = tuned.times
    if smaller:
        plain = {step_of(table.program, one.program): _plain_us(one, measurer) or inf for one in smaller}
        fastest = by_sizes(table, tuned, ranked, plain, measurer, tools.tester, tools.pool)
    for variant, summary, largest in fastest:
        found, tested = tuned_sizes(table, variant, largest, measurer, tools.tester, tools.pool)
        if not tested.passed:
            rejected[tested.reason or "wrong on the device"] += 1
            continue
        right = indexed(unit.program, _scheduled(variant.candidate), found)
        if not right.passed:
            rejected[f"its tiles: {right.reason}"] += 1
            continue
        trail.chosen(variant.candidate)
        # A neighbour has its topology, and so its verdict, from where the walk began.
        verdict = next(verdict for other, verdict in variants if other.candidate.block is variant.candidate.block)
        verdict = replace(_with_float(verdict, tested, unit.program), indexing=right.indexing)
        plain_us = _plain_us(unit, measurer) if place.units > 1 else None
        return _solution(variant, found, verdict, library_us, summary.median_us, plain_us)
    return None


def _plain_us(unit: SearchUnit, measurer: Measurer) -> float | None:
    """Microseconds of the unit as the user has it, eager; None where it cannot be run on its own."""
    try:
        text, values = plain_source(unit)
    except Rejected:
        return None
    found = measurer.measure_kernel(Subject("plain", text, FUNCTION), plain_specs(unit, values), rounds=12)
    return found.median_us if isinstance(found, Summary) else None


def _pays_at(small: SearchUnit, solution: Solution, tools: Tools) -> bool:
    """Whether a kernel with a size in a range pays at one of its sizes. small: the unit there"""
    if tools.measurer is None:
        kernels = [scheduled(kernel) for kernel in solution.kernels]
        ours_us, library_us = estimates_at(small.program, kernels, solution.source, tools.target)
        return ours_us < library_us
    specs = input_specs(small.program, [tensor.name for tensor in solution.source.inputs])
    ours = tools.measurer.measure_kernel(subject_of(solution.source), specs, rounds=12)
    plain_us = _plain_us(small, tools.measurer)
    return isinstance(ours, Summary) and plain_us is not None and ours.median_us < plain_us


def plain_specs(unit: SearchUnit, values: Sequence[int]) -> tuple[InputSpec, ...]:
    """Of the arguments of the unit in plain PyTorch. A tensor of which the kernel reads parts is scaled as the one
    of its inputs that has to be smallest."""
    names = {value: name for name, value in unit.inputs.items()}
    kernel = dict(zip(names, input_specs(unit.program, list(names.values())), strict=True))
    least = min(spec.scale for spec in kernel.values())
    whole = {v: InputSpec(info.shape, info.strides, info.dtype, least) for v, info in unit.viewed.items()}
    return tuple({**whole, **kernel}[value] for value in values)


def _tested(
    unit: SearchUnit,
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
        whole = _scheduled(variant.candidate)
        # Of two kernels one has small tiles, so many blocks, at the sizes that the other needs.
        kernels = reduced_kernels(whole, largest_tile=LARGEST_TILE if len(whole) == 1 else 16)
        program = resize(unit.program, program_sizes(unit.program, kernels))
        program, kernels = summing_as_at_full_size(program, kernels, unit.program, whole)
        sizes = [at_step(program, kernels, step) for step in tested_steps(program)]
        found = [verify_schedules(*one) for one in sizes]
        right = indexed(unit.program, whole, variant.kernel)
        wrong = next((one for one in (*found, right) if not one.passed), None)
        if wrong is not None:
            rejected[f"its tiles: {wrong.reason}"] += 1
            continue
        kernel = variant.kernel
        if tools.compiled:
            program = unit.program
        else:
            try:
                kernel = lower_kernels(kernels, target=tools.target, outputs=_outputs(program), program=program)
            except Rejected as error:
                rejected[f"at reduced sizes: {error}"] += 1
                continue
        tested = tested_at_sizes(tools.tester, kernel, program)
        if tested.passed:
            verdict = replace(_with_float(verdict, tested, program), indexing=right.indexing)
            trail.chosen(variant.candidate)
            return _solution(variant, variant.kernel, verdict, library_us, None)
        rejected[tested.reason or f"wrong {where}"] += 1
    return None


def _with_float(verdict: Verdict, tested: FloatResult, program: TensorProgram) -> Verdict:
    """program: at the sizes of the test; of a dynamic axis, the largest of them"""
    return replace(
        verdict,
        max_rel_error=tested.max_rel_error,
        eager_rel_error=tested.eager_rel_error,
        float_sizes=dict(program.sizes),
        dynamic_sizes={a: tuple(sizes_at(program, step)[a] for step in tested_steps(program)) for a in program.least},
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
    kernel, *then = (node_of(one.block, one.schedule) for one in variant.candidate.kernels)
    estimate_us = variant.candidate.estimate_us
    return Solution(kernel, source, verdict, estimate_us, library_us, measured_us, plain_us, tuple(then))


def _most_common(reasons: Counter[str]) -> str:
    return reasons.most_common(1)[0][0] if reasons else "no reason was given"
