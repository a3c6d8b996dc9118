"""Kernels that may be faster up to a size of a range, measured: which are, with which schedules, and up to where."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from itertools import islice

from mugraph.ir.block import Candidate, Schedule
from mugraph.ir.kernel import KernelSource, Rejected
from mugraph.sizes.borders import Border, Option, borders
from mugraph.sizes.table import Kernels, SizeTable, at_step, sizes_at
from mugraph.sizes.tuning import RightLaunches, Trial, Tried, compile_ahead, trial
from mugraph.sizes.up_to import program_up_to
from mugraph.tune.compile_pool import CompilePool
from mugraph.tune.input_specs import input_specs
from mugraph.tune.measure import Measurer
from mugraph.tune.statistics import Summary
from mugraph.tune.tuner import Variant, subject_of
from mugraph.verification.float_test import FloatTester

OPTIONS = 5
"""That are measured, at most."""
MEASURED = 3
"""Schedules of one of them that are measured at a step, the best by estimate; one at steps before it is to begin."""
SLOWER = 1.3
"""Times what other kernels are taken to need where they are looked at: an estimate may be wrong by as much."""
STEPS = 4
"""Of one of them at which it is measured."""


@dataclass(frozen=True)
class Measured:
    """An option with what was measured of it, whether or not it is right. rows: step -> of each kernel the schedule
    that is fastest there; tried: that it is the fastest of"""

    option: Option
    rows: Mapping[int, Sequence[Schedule]]
    tried: Mapping[int, Sequence[Tried]] = field(default_factory=dict[int, Sequence[Tried]])

    def up_to(self, step: int) -> Option:
        """With the schedules of that step."""
        return replace(self.option, schedules=tuple(self.rows[step]))

    def right(self, end: int) -> Measured | None:
        """Up to a step, with what is right on the device; None where nothing is there."""
        known, rows = RightLaunches(), dict[int, Sequence[Schedule]]()
        for step, chosen in self.rows.items():
            if step > end:
                continue
            found = {one.trial.number: one.right(known) for one in self.tried[step]}
            if all(best is not None for best in found.values()):
                best = {number: one[0].schedule for number, one in found.items() if one is not None}
                rows[step] = [best.get(number, schedule) for number, schedule in enumerate(chosen)]
        return replace(self, rows=rows) if end in rows else None


@dataclass(frozen=True)
class _Prepared:
    """An option written out. kernels: its schedules; trials: by step"""

    option: Option
    kernels: Kernels
    trials: Mapping[int, Sequence[Trial]]


def shortlist(options: Sequence[Option], now_us: Mapping[int, float]) -> list[Border]:
    """Those that may gain by estimate, and where they would run; also those that would if all else were slower."""
    found: dict[int, Border] = {}
    for times in (1.0, SLOWER):
        for border in borders(options, {step: us * times for step, us in now_us.items()}, earned=0.0):
            found.setdefault(id(border.option), border)
    for border in [*found.values()]:  # an estimate knows one kind of schedule from another about as well as it can
        inside = [step for step in now_us if border.begin <= step <= border.end]
        others = [
            one
            for one in options
            if one.end == border.end and id(one) not in found and all(step in one.us for step in inside)
        ]
        best = min(others, key=lambda one: sum(one.us[step] / now_us[step] for step in inside), default=None)
        if best is not None:
            found[id(best)] = Border(border.begin, border.end, best)
    return [*found.values()][:OPTIONS]


def steps_looked_at(shortlisted: Sequence[Border], every: Sequence[int]) -> list[int]:
    """Few of those at which one of them may run, where it begins and ends among them."""
    found: set[int] = set()
    for one in shortlisted:
        inside = [step for step in every if one.begin <= step <= one.end]
        last = len(inside) - 1
        found.update(inside[last * at // (STEPS - 1)] for at in range(STEPS))
    return sorted(found)


@dataclass(frozen=True)
class BorderTimes:
    """What measures them. named: gives the kernels of a candidate the names that they have up to a size"""

    table: SizeTable
    measurer: Measurer
    tester: FloatTester
    pool: CompilePool | None
    named: Callable[[Candidate, int], Candidate]

    def now(self, source: KernelSource, steps: Iterable[int]) -> dict[int, float]:
        """Microseconds of what runs without borders, where they can be had."""
        found: dict[int, float] = {}
        subject, program = subject_of(source), self.table.program
        specs = {
            step: input_specs(at_step(program, [], step)[0], [tensor.name for tensor in source.inputs])
            for step in steps
        }
        if self.pool is not None:
            self.pool.compile([(subject, one) for one in specs.values()])
        for step, one in specs.items():
            summary = self.measurer.measure_kernel(subject, one, rounds=12)
            if isinstance(summary, Summary):
                found[step] = summary.median_us
        return found

    def measured(self, shortlisted: Sequence[Border], steps: Sequence[int]) -> list[Measured]:
        """Without those that cannot be written."""
        prepared = [one for border in shortlisted if (one := self._prepared(border, steps)) is not None]
        compile_ahead((one for each in prepared for trials in each.trials.values() for one in trials), self.pool)
        return [self._measured(one) for one in prepared]

    def _prepared(self, border: Border, steps: Sequence[int]) -> _Prepared | None:
        program, end = self.table.program, border.option.end
        own = program_up_to(program, end)
        if own is None:
            return None
        table = SizeTable(own, self.table.target, self.table.outputs)
        candidate = self.named(border.option.at(program, end), sizes_at(program, end)[program.leading[0]])
        kernels = [(kernel.block, kernel.schedule) for kernel in candidate.kernels]
        try:
            variant = Variant(candidate, table.lowered(kernels))
        except Rejected:
            return None
        trials: dict[int, list[Trial]] = {}
        for step in [step for step in steps if step <= end]:
            most = MEASURED if step >= border.begin else 1
            small, _ = at_step(own, [], step)
            for number, part in enumerate(variant.kernel.kernels):
                if not part.launches or part.by not in own.leading:
                    continue
                each = table.each_choice(kernels, variant.kernel, number, step)
                launches = [one for _, one, _ in islice(each, most)]
                launches = launches or [replace(part.launches[-1], largest=sizes_at(own, step)[part.by])]
                trials.setdefault(step, []).append(trial(table, variant, number, launches, small))
        return _Prepared(border.option, kernels, trials)

    def _measured(self, prepared: _Prepared) -> Measured:
        us: dict[int, float] = {}
        rows: dict[int, list[Schedule]] = {}
        tried: dict[int, list[Tried]] = {}
        for step, trials in prepared.trials.items():
            chosen = [schedule for _, schedule in prepared.kernels]
            for one in trials:
                measured = one.measured(self.measurer, self.tester, self.pool)
                if (fastest := measured.fastest) is not None:
                    chosen[one.number], us[step] = fastest[0].schedule, fastest[1]
                    tried.setdefault(step, []).append(measured)
            rows[step] = chosen
        return Measured(replace(prepared.option, us=us), {step: rows[step] for step in us}, tried)
