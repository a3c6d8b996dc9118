"""A dynamic kernel at several sizes on a device: right at each of them, and with the schedule that is fastest there."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass, field, replace
from itertools import islice

from mugraph.ir.kernel import KernelSource, Launch
from mugraph.ir.program import TensorProgram
from mugraph.sizes.table import SizeTable, at_step, at_tested_steps, merged, words_of
from mugraph.sizes.up_to import border_steps
from mugraph.tune.compile_pool import CompilePool
from mugraph.tune.measure import Measurer
from mugraph.tune.tuner import FINALISTS, Tuned, Variant, compiled_ahead, tune
from mugraph.verification.float_results import FloatResult
from mugraph.verification.float_test import FloatTester

MEASURED = 6
"""Schedules of one kernel that are measured at one size, the best by estimate."""
_MULTIPLE = 16


def tested_at_sizes(tester: FloatTester, kernel: KernelSource, program: TensorProgram) -> FloatResult:
    """The float test at the least, a ragged and the largest size (once, where no size varies), and on both sides of
    where other kernels are launched: the first that fails, else the one with the largest error."""
    found: list[FloatResult] = []
    borders = [at_step(program, [], step) for step in border_steps(program, kernel)]
    for small, _ in [*borders, *at_tested_steps(program, [])]:
        tested = tester.test_kernel(kernel, small)
        if not tested.passed:
            sizes = words_of(program, small.sizes)
            return replace(tested, reason=f"with {sizes}: {tested.reason}") if sizes else tested
        found.append(tested)
    return max(found, key=lambda one: one.max_rel_error or 0.0)


def tuned_sizes(
    table: SizeTable,
    variant: Variant,
    largest: FloatResult,
    measurer: Measurer,
    tester: FloatTester,
    pool: CompilePool | None,
) -> tuple[KernelSource, FloatResult]:
    """The variant, chosen at the largest size, with what is fastest at the others by measuring, and its float test at
    several sizes. largest: of the test at the largest size"""
    program, whole = table.program, variant.kernel
    if not program.least:
        return whole, largest
    kernels = [(kernel.block, kernel.schedule) for kernel in variant.candidate.kernels]
    trials: list[Trial] = []
    for step in table.steps[:-1]:
        small, _ = at_step(program, [], step)
        for number, part in enumerate(whole.kernels):
            if part.by in program.leading and part.launches:
                each = table.each_choice(kernels, whole, number, step)
                found = [launch for _, launch, _ in islice(each, MEASURED)]
                trials.append(trial(table, variant, number, found, small))
    compile_ahead(trials, pool)
    rows: list[list[Launch]] = [[] for _ in whole.kernels]
    known = RightLaunches()
    for one in trials:
        best = one.measured(measurer, tester, pool).right(known)
        rows[one.number] += [best[0]] if best is not None else []
    parts = [
        replace(part, launches=merged([*own, *part.launches])) if part.launches else part
        for part, own in zip(whole.kernels, rows, strict=True)
    ]
    source = table.with_parts(whole, parts)
    return source, tested_at_sizes(tester, source, program)


@dataclass(frozen=True)
class Trial:
    """Launches of kernel `number` at one size, the program's: the fastest is looked for."""

    number: int
    program: TensorProgram
    variants: Sequence[tuple[Variant, Launch]]

    def measured(self, measurer: Measurer, tester: FloatTester, pool: CompilePool | None) -> Tried:
        tuned = tune(self.program, [one for one, _ in self.variants], measurer, tester, pool)
        return Tried(self, tuned, tester)


def trial(table: SizeTable, variant: Variant, number: int, launches: Sequence[Launch], program: TensorProgram) -> Trial:
    variants: list[tuple[Variant, Launch]] = []
    for launch in launches:
        parts = list(variant.kernel.kernels)
        parts[number] = replace(parts[number], launches=(launch,))
        variants.append((replace(variant, kernel=table.with_parts(variant.kernel, parts)), launch))
    return Trial(number, program, variants)


def compile_ahead(trials: Iterable[Trial], pool: CompilePool | None) -> None:
    """All at once: there are more processors than schedules at one size."""
    if pool is not None:
        for one in trials:
            compiled_ahead(one.program, [variant for variant, _ in one.variants], pool, waits=False)


@dataclass
class RightLaunches:
    """Whether launches were right on the device. One of one kernel and one schedule is the same code at all sizes that
    Triton does not tell apart: it specialises a kernel for a size of 1, and for multiples of 16."""

    _right: dict[tuple[object, ...], bool] = field(default_factory=dict[tuple[object, ...], bool])

    def test(self, number: int, variant: Variant, launch: Launch, program: TensorProgram, tester: FloatTester) -> bool:
        sizes = [program.sizes[axis] for axis in sorted(variant.kernel.least)]
        told = tuple((size == 1, size % _MULTIPLE == 0) for size in sizes)
        constexprs = tuple(sorted(launch.constexprs.items()))
        key = number, launch.terms, constexprs, launch.num_warps, launch.num_stages, launch.part, told
        if key not in self._right:
            self._right[key] = tester.test_kernel(variant.kernel, program).passed
        return self._right[key]


@dataclass(frozen=True)
class Tried:
    """What was measured of a trial. Microseconds are those of all kernels."""

    trial: Trial
    tuned: Tuned
    tester: FloatTester

    @property
    def fastest(self) -> tuple[Launch, float] | None:
        """Whether or not it is right."""
        return next(self._in_turn(), None)

    def right(self, known: RightLaunches) -> tuple[Launch, float] | None:
        """The fastest that is right; None where none of the first few is."""
        variants = {id(launch): variant for variant, launch in self.trial.variants}
        for launch, us in islice(self._in_turn(), FINALISTS):
            own = variants[id(launch)]
            if known.test(self.trial.number, own, launch, self.trial.program, self.tester):
                return launch, us
        return None

    def _in_turn(self) -> Iterator[tuple[Launch, float]]:
        launches = {id(variant): launch for variant, launch in self.trial.variants}
        again = [id(variant) for variant, _ in self.tuned.again_us]
        others = sorted((one for one in self.tuned.measured_us if id(one[0]) not in again), key=lambda one: one[1])
        return ((launches[id(variant)], us) for variant, us in (*self.tuned.again_us, *others))
