"""Which candidate is fastest here: measure what a tuner asks for, batch by batch, then the finalists together.

Compiled kernels are compared with float64 on the device before their time counts: compilers err.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, field, replace
from itertools import repeat
from math import inf, prod

from mugraph.ir.block import Candidate
from mugraph.ir.dtypes import itemsize
from mugraph.ir.kernel import KernelSource
from mugraph.ir.program import TensorProgram
from mugraph.search.topologies.limits import never
from mugraph.tune.compile_pool import CompilePool
from mugraph.tune.input_specs import input_specs
from mugraph.tune.measure import Measurer, Refused
from mugraph.tune.messages import InputSpec, Subject
from mugraph.tune.statistics import Summary
from mugraph.tune.tuners.model_then_walk import MEASURED, ModelThenWalk
from mugraph.tune.tuners.tuner import Told, Tuner
from mugraph.verification.float_results import FloatResult
from mugraph.verification.float_test import FloatTester

COMPARED = 4
"""The fastest, measured together before they are tested."""
FINALISTS = 3
"""That are right, at most."""
HOPELESS = 1.5
"""Times what candidates have to be faster than: where the best of a batch takes as long, no other is measured. A walk
gains a part of that, and estimates were wrong by more."""
ENOUGH = 1.04
"""Times what none can be faster than: what else there is gains less than measuring can tell."""
UNLIKELY, FEW = 2.0, 4
"""Where even the best is expected to take so many times what it has to be faster than, a few are measured first."""
EACH_S = 0.5
"""Seconds that a kernel takes to be compiled, beside others, and measured, about."""
TRIED = 5
"""Schedules of one topology that are wrong on the device before its others are given up: a fault of a schedule, or of
its compilation, is of one or two; rounding of the topology's, or of a library's kernel in it, of all."""


def subject_of(kernel: KernelSource) -> Subject:
    return Subject(kernel.name, kernel.standalone(), f"launch_{kernel.name}", tf32=kernel.settings)


@dataclass(frozen=True)
class Variant:
    """A candidate with its source."""

    candidate: Candidate
    kernel: KernelSource

    @property
    def subject(self) -> Subject:
        return subject_of(self.kernel)


Found = tuple[Variant, Summary, FloatResult]


@dataclass
class Tuned:
    """What was measured, and which of it is right.

    measured_us: all that were timed, in that order, with the median of their first run
    again_us:    the fastest of them, in the order of their second run
    refused:     why others have no time that counts. It grows as more of them are tested
    """

    measured_us: Sequence[tuple[Variant, float]]
    again_us: Sequence[tuple[Variant, float]]
    refused: list[tuple[Variant, str]]
    _untested: Iterator[Found]
    _right: list[Found] = field(default_factory=list[Found])

    @property
    def measured(self) -> int:
        """How many were timed."""
        return len(self.measured_us)

    @property
    def best_us(self) -> float | None:
        """The least time, of one run."""
        return min((us for _, us in self.measured_us), default=None)

    def in_turn(self) -> Iterator[Found]:
        """Those that are right on the device, fastest first, with what the float test found there. Each is tested when
        it is asked for: the check takes seconds, and one is enough where nothing else is wrong with it."""
        for position in range(FINALISTS):
            if position == len(self._right):
                found = next(self._untested, None)
                if found is None:
                    return
                self._right.append(found)
            yield self._right[position]

    def test(self) -> None:
        """As many as there may be, now."""
        for _ in self.in_turn():
            pass

    @property
    def times(self) -> Sequence[Found]:
        """All of them, at most FINALISTS."""
        return tuple(self.in_turn())


def first_of(variants: Sequence[Variant], worth_us: float) -> int:
    """How many are measured before anything is concluded. worth_us: what they have to be faster than, by estimate"""
    best = min((_estimate(variant) for variant in variants), default=inf)
    return FEW if best > UNLIKELY * worth_us else MEASURED


def first_within(left_s: float, first: int) -> int:
    """The same, where only so many seconds are left for it."""
    return first if left_s >= first * EACH_S else min(first, max(FEW, int(left_s / EACH_S)))


def compiled_ahead(
    program: TensorProgram, variants: Sequence[Variant], pool: CompilePool, *, waits: bool = True
) -> None:
    """What `tune` begins with, without a tuner of its own, in other processes: they leave the device alone, so it need
    not be quiet yet. waits: until they are compiled"""
    subjects = [(variant.subject, _specs(program, variant)) for variant in variants]
    if waits:
        pool.compile(subjects)
    else:
        pool.ask(subjects)


def tune(
    program: TensorProgram,
    variants: Sequence[Variant],
    measurer: Measurer,
    tester: FloatTester,
    pool: CompilePool | None = None,
    *,
    around: Callable[[Variant], Sequence[Variant]] = lambda _: (),
    tuner: Tuner[Variant] | None = None,
    trials: int | None = None,
    worth_us: float | None = None,
    first: int = MEASURED,
    progress: Callable[[int, int], None] | None = None,
    cancelled: Callable[[], bool] = never,
    over: Callable[[], bool] = never,
    enough_us: float | None = None,
) -> Tuned:
    """Measure variants of one program, as a tuner asks for them, and return the fastest that are right.

    A time counts once the kernel agreed with float64 on the device. Kernels are checked from the fastest on, as many as
    are asked for: the check takes seconds, a time milliseconds, and a slow kernel's time decides nothing.

    variants: ranked, the best first
    tester:   of this device
    pool:     compiles ahead of the measuring, in parallel
    around:   variants one step from the given one, best first by estimate
    tuner:    says what is measured; None: the best of the variants, then those around the fastest of them
    trials:   measured at most; None: as many as the tuner asks for
    worth_us: what they have to be faster than, if that is known
    first:    measured before it is asked whether any can be fast enough, at most
    progress: called with (measured, of how many)
    over:     no further one is measured, once a few were; what is fastest so far is tested
    enough_us: what none can be faster than: once one comes near, no other is measured
    """
    batch = _Batch(program, measurer, pool, worth_us, progress, cancelled, over, enough_us)
    tuner = tuner or ModelThenWalk(variants, around, _text, _estimate)
    while not cancelled() and not is_hopeless(batch.best_us, worth_us):
        left = inf if trials is None else trials - len(batch.known)
        asked = tuner.ask() if left > 0 and not batch.is_done else ()
        if not asked:
            break
        asked = asked if left >= len(asked) else asked[: int(left)]
        begun = len(asked) if batch.known else min(first, len(asked))
        told = batch.measure(asked[:begun])
        if not is_hopeless(batch.best_us, worth_us) and not batch.is_done:
            told += batch.measure(asked[begun:])
        tuner.tell(told)
    ranked = sorted(batch.times, key=lambda pair: pair[1].median_us)
    hopeless = is_hopeless(batch.best_us, worth_us)
    settled = hopeless or batch.is_done
    again = _again(program, ranked[:COMPARED], measurer) if not settled else ranked[:COMPARED]
    refused = batch.refused
    return Tuned(
        tuple((variant, summary.median_us) for variant, summary in batch.times),
        tuple((variant, summary.median_us) for variant, summary in again),
        refused,
        _tested(program, [*again, *ranked[COMPARED:]], tester, refused, cancelled),
    )


def _tested(
    program: TensorProgram,
    ranked: Sequence[tuple[Variant, Summary]],
    tester: FloatTester,
    refused: list[tuple[Variant, str]],
    cancelled: Callable[[], bool],
) -> Iterator[Found]:
    """Those that are right. refused: the others are added, with the reason"""
    wrong = Counter[tuple[int, ...]]()
    for variant, summary in ranked:
        if cancelled():
            return
        topology = variant.candidate.topology
        if wrong[topology] == TRIED:
            refused.append((variant, f"{TRIED} other schedules of its topology were wrong on the device"))
            continue
        found = tester.test_kernel(variant.kernel, program)
        if found.passed:
            yield variant, summary, found
            continue
        wrong[topology] += 1
        refused.append((variant, found.reason or "wrong on the device"))


def is_hopeless(best_us: float | None, worth_us: float | None) -> bool:
    """Whether the best that was measured is so slow that none can be expected to be fast enough."""
    return best_us is not None and worth_us is not None and best_us > HOPELESS * worth_us


def _text(variant: Variant) -> str:
    return variant.kernel.standalone()


def _estimate(variant: Variant) -> float:
    return variant.candidate.estimate_us


@dataclass
class _Batch:
    """Variants measured so far, each once."""

    program: TensorProgram
    measurer: Measurer
    pool: CompilePool | None
    worth_us: float | None
    progress: Callable[[int, int], None] | None
    cancelled: Callable[[], bool]
    over: Callable[[], bool] = never
    enough_us: float | None = None
    times: list[tuple[Variant, Summary]] = field(default_factory=list[tuple[Variant, Summary]])
    refused: list[tuple[Variant, str]] = field(default_factory=list[tuple[Variant, str]])
    known: dict[str, float | None] = field(default_factory=dict[str, float | None])
    """Texts -> microseconds; None where there is no time."""

    @property
    def is_over(self) -> bool:
        """Whether as many were measured as there is time for: a few at least."""
        return len(self.times) >= FEW and self.over()

    @property
    def is_done(self) -> bool:
        """Whether no further one is worth measuring, or there is no time for it."""
        best, enough = self.best_us, self.enough_us
        return self.is_over or (best is not None and enough is not None and best <= ENOUGH * enough)

    @property
    def best_us(self) -> float | None:
        return min((summary.median_us for _, summary in self.times), default=None)

    def measure(self, variants: Sequence[Variant]) -> list[Told[Variant]]:
        """Of all, with what is known of those whose text was measured before."""
        new: list[Variant] = []
        for variant in variants:
            if _text(variant) not in self.known:
                self.known[_text(variant)] = None
                new.append(variant)
        for lot in self._compiled(new):
            if self.cancelled() or self.is_over:
                break
            kernels = [(variant.subject, _specs(self.program, variant)) for variant in lot]
            best_us = min((us for us in (self.best_us, self.worth_us) if us is not None), default=None)
            results = self.measurer.measure_kernels(kernels, rounds=12, best_us=best_us, together=len(lot))
            for variant in lot:
                if self.cancelled() or self.is_over:
                    break
                if self.progress is not None:
                    tried = len(self.times) + len(self.refused)
                    self.progress(tried, len(self.known))
                result = next(results)
                if isinstance(result, Refused):
                    self.refused.append((variant, result.reason))
                else:
                    self.times.append((variant, result))
                    self.known[_text(variant)] = result.median_us
        return [(variant, self.known[_text(variant)]) for variant in variants]

    def _compiled(self, variants: Sequence[Variant]) -> Iterator[list[Variant]]:
        """Those that compile, some at a time: the others are compiled while these are measured."""
        if self.cancelled():
            return
        most = self.measurer.at_once(_bytes(self.program))
        reasons: Iterator[str | None] = repeat(None)
        if self.pool is not None:
            reasons = self.pool.in_order([(v.subject, _specs(self.program, v)) for v in variants])
        lot: list[Variant] = []
        for variant, reason in zip(variants, reasons, strict=False):
            if reason is not None:
                self.refused.append((variant, f"does not compile: {reason}"))
            else:
                lot.append(variant)
            if len(lot) == most:
                yield lot
                lot = []
        if lot:
            yield lot


def _bytes(program: TensorProgram) -> int:
    """Of the outputs."""
    tensors = program.outputs.values()
    return sum(prod(tensor.shape(program.sizes)) * itemsize(tensor.dtype) for tensor in tensors)


def _specs(program: TensorProgram, variant: Variant) -> tuple[InputSpec, ...]:
    return input_specs(program, [tensor.name for tensor in variant.kernel.inputs])


def _again(
    program: TensorProgram, fastest: Sequence[tuple[Variant, Summary]], measurer: Measurer
) -> list[tuple[Variant, Summary]]:
    """The fastest, measured once more in one interleaved run: the first of dozens of noisy times is best partly by
    luck."""
    orders = {tuple(tensor.name for tensor in variant.kernel.inputs) for variant, _ in fastest}
    if len(fastest) < 2 or len(orders) > 1:  # one run has one list of inputs
        return list(fastest)
    subjects = [replace(variant.subject, name=f"finalist {number}") for number, (variant, _) in enumerate(fastest)]
    summaries = measurer.compare(subjects, input_specs(program, next(iter(orders))))
    again: list[tuple[Variant, Summary]] = []
    for subject, (variant, first) in zip(subjects, fastest, strict=True):
        summary = summaries[subject.name]
        # There may be no memory for the results of all of them: then the first time is what is known.
        again.append((variant, summary if isinstance(summary, Summary) else first))
    return sorted(again, key=lambda one: one[1].median_us)
