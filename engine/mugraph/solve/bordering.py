"""Of a size in a range: other kernels where it is small, where these are faster. Each is tested like any other, and the
text that chooses among them is tested on both sides of each border and proved for all sizes."""

from __future__ import annotations

from collections import Counter
from collections.abc import Generator, Mapping, Sequence
from dataclasses import dataclass, replace

from mugraph.codegen.by_size import by_size
from mugraph.events import Event
from mugraph.ir.block import Schedule
from mugraph.ir.kernel import KernelSource, Rejected, UpTo
from mugraph.ir.program import TensorProgram
from mugraph.ir.region import SearchUnit
from mugraph.search.schedules.cost import estimate_library_us
from mugraph.sizes.border_times import BorderTimes, shortlist, steps_looked_at
from mugraph.sizes.borders import EARNED_BY_ESTIMATE, Border, Option, Options, borders, powers
from mugraph.sizes.search_unit import estimates_at
from mugraph.sizes.table import Kernels, SizeTable, at_step, sizes_at, steps_of
from mugraph.sizes.text import others_checked, text_checked
from mugraph.sizes.tuning import tested_at_sizes
from mugraph.sizes.up_to import program_up_to, program_up_to_size, up_to_name
from mugraph.solve.ending import NO_END, Ending
from mugraph.solve.ranking import Judged
from mugraph.solve.right import Right
from mugraph.solve.telling import Telling
from mugraph.solve.testing import best_that_is_right
from mugraph.solve.tools import Tools
from mugraph.solve.writing import Written, kernels_of, named
from mugraph.tune.tuner import Variant
from mugraph.verification.verdict import Verdict

NEEDED_S = 8.0
"""Of the seconds that are left, for the tests of others: with fewer, the kernels stay as they are."""


@dataclass(frozen=True)
class _Found:
    """Kernels up to a step, not tested yet. rows: step -> of each kernel the schedule there; None: by estimate"""

    step: int
    option: Option
    rows: Mapping[int, Sequence[Schedule]] | None = None


def with_borders(
    right: Right,
    judged: Sequence[Judged],
    unit: SearchUnit,
    table: SizeTable,
    telling: Telling,
    tools: Tools,
    *,
    exact: bool = False,
    ending: Ending = NO_END,
    text_left: bool = False,
) -> Generator[Event, None, tuple[Right | None, Mapping[str, int]]]:
    """The kernels, with others up to some sizes; as they are where none are faster, or right. And why others are not.

    judged: candidates whose topologies passed, those that are good at small sizes first
    text_left: the kernels' own text was not checked yet: it is, with that of others or alone. None where it is wrong
    """
    program, rejected = unit.program, Counter[str]()
    if not program.least or ending.left_s < NEEDED_S:
        return (_text_checked(right, program, rejected) if text_left else right), rejected
    yield telling.working(f"comparing kernels of {telling.place.name} by size", 0, 0)
    with tools.on("code generation"):
        options = Options(program, tools.target).of([candidate for candidate, _ in judged])
    now_us = _estimated(right, unit, tools)
    found = (
        [_Found(one.end, one.option) for one in borders(options, now_us, EARNED_BY_ESTIMATE)]
        if tools.measurer is None
        else _measured(right, shortlist(options, now_us), table, telling, tools, rejected)
    )
    verdicts = {candidate.topology: verdict for candidate, verdict in judged}
    rows: list[_Row] = []
    for one in found:
        verdict = verdicts[one.option.chain.topology]
        made = yield from _tested(one, verdict, unit, table, telling, tools, rejected, exact=exact, ending=ending)
        rows += [made] if made is not None else []
    source, text = _written_together(right, rows, unit, rejected, whole=text_left)
    if source is None and text_left:
        own = _text_checked(right, program, rejected)
        if own is None:
            return None, rejected
        right = own
    if source is None:  # one of them alone may be what is wrong
        rows = [row for row in rows if _is_right_alone(row, program, rejected)] if len(rows) > 1 else []
        source, text = _written_together(right, rows, unit, rejected)
    if source is None:
        return right, rejected
    verdict = replace(
        _with_text(right.verdict, text), below=tuple(_with_text_below(row, text, program) for row in rows)
    )
    if tools.compiled:
        tested = tested_at_sizes(tools.tester, source, program)
        if not tested.passed:
            rejected[f"its choice by size: {tested.reason or 'wrong on the device'}"] += 1
            return (_text_checked(right, program, rejected) if text_left else right), rejected
    return replace(right, source=source, verdict=verdict), rejected


_Row = tuple[UpTo, Verdict]


def _text_checked(right: Right, program: TensorProgram, rejected: Counter[str]) -> Right | None:
    """With the check of its own text; None where that is wrong."""
    text = text_checked(program, right.source, kernels_of(right.candidate))
    if not text.passed:
        rejected[f"its text: {text.reason}"] += 1
        return None
    return replace(right, verdict=_with_text(right.verdict, text))


def _with_text(verdict: Verdict, text: Verdict) -> Verdict:
    return replace(verdict, text=text.text, proved_sizes=text.proved_sizes, proved_claims=text.proved_claims)


def _written_together(
    right: Right, rows: Sequence[_Row], unit: SearchUnit, rejected: Counter[str], *, whole: bool = False
) -> tuple[KernelSource | None, Verdict]:
    """The kernels with others, and the check of that text; None where there is no such text, or it is wrong. whole: the
    kernels' own text was not checked yet"""
    try:
        source = by_size(right.source, [row for row, _ in rows])
    except Rejected as error:
        rejected[str(error)] += 1
        return None, Verdict(False)
    if not rows:
        return None, Verdict(False)
    text = others_checked(unit.program, source, whole=whole)
    if not text.passed:
        rejected[f"its choice by size: {text.reason}"] += 1
        return None, text
    return source, text


def _is_right_alone(row: _Row, program: TensorProgram, rejected: Counter[str]) -> bool:
    one, _ = row
    own = program_up_to_size(program, one.axis, one.largest)
    text = text_checked(own, one.source, one.kernels) if own is not None else Verdict(False, "they end nowhere")
    if not text.passed:
        rejected[f"its text: {text.reason}"] += 1
    return text.passed


def _with_text_below(row: _Row, text: Verdict, program: TensorProgram) -> Verdict:
    """What is proved of the whole text is so for the sizes of others in it."""
    one, verdict = row
    own = program_up_to_size(program, one.axis, one.largest)
    sizes = own.sizes if own is not None else program.sizes
    ends = {axis: (least, sizes[axis]) for axis, least in program.least.items()}
    return replace(_with_text(verdict, text), proved_sizes=ends)


def _estimated(right: Right, unit: SearchUnit, tools: Tools) -> dict[int, float]:
    """By step, of the kernels or of PyTorch, whichever is faster: that one would run."""
    kernels, found = kernels_of(right.candidate), dict[int, float]()
    for step in powers(unit.program):
        small, _ = at_step(unit.program, [], step)
        own, _ = estimates_at(small, kernels, right.source, tools.target)
        found[step] = min(own, estimate_library_us(small, tools.target))
    return found


def _measured(
    right: Right,
    options: Sequence[Border],
    table: SizeTable,
    telling: Telling,
    tools: Tools,
    rejected: Counter[str],
) -> list[_Found]:
    """As measured: those of the options that are faster than the kernels, and right."""
    program, measurer = table.program, tools.measurer
    if measurer is None or not options:
        return []
    steps = steps_looked_at(options, powers(program))
    name = telling.place.name
    times = BorderTimes(
        table, measurer, tools.tester, tools.pool, lambda candidate, size: named(candidate, up_to_name(name, size))
    )
    now_us = times.now(right.source, steps)
    known = times.measured(options, steps)
    of = {id(one.option): one for one in known}
    found: list[_Found] = []
    for border in borders([one.option for one in known], now_us):
        one = of[id(border.option)].right(border.end)
        if one is None:
            rejected["wrong on the device"] += 1
        else:
            found.append(_Found(border.end, one.up_to(border.end), one.rows))
    return found


def _tested(
    one: _Found,
    verdict: Verdict,
    unit: SearchUnit,
    table: SizeTable,
    telling: Telling,
    tools: Tools,
    rejected: Counter[str],
    *,
    exact: bool,
    ending: Ending,
) -> Generator[Event, None, _Row | None]:
    """The kernels, where they are right at sizes up to the step; else why not is counted. Their text is checked as a
    part of the whole."""
    program = unit.program
    own, sizes = program_up_to(program, one.step), sizes_at(program, one.step)
    if own is None:
        return None
    axis = program.leading[0]
    candidate = named(one.option.at(program, one.step), up_to_name(telling.place.name, sizes[axis]))
    kernels = kernels_of(candidate)
    try:
        with tools.on("code generation"):
            source = _written(SizeTable(own, table.target, table.outputs), kernels, one.rows, own)
    except Rejected as error:
        rejected[str(error)] += 1
        return None
    outcome = yield from best_that_is_right(
        Written([(Variant(candidate, source), verdict)]), replace(unit, program=own), telling, tools,
        exact=exact, ending=ending, text_later=True,
    )  # fmt: skip
    rejected.update(outcome.rejected)
    right = outcome.right
    return (UpTo(axis, sizes[axis], right.source, tuple(kernels)), right.verdict) if right is not None else None


def _written(
    table: SizeTable, kernels: Kernels, rows: Mapping[int, Sequence[Schedule]] | None, program: TensorProgram
) -> KernelSource:
    """rows: step -> of each kernel the schedule up to that. Raises Rejected"""
    if rows is None:
        return table.source(kernels)
    whole = table.lowered(kernels)
    chosen: list[list[tuple[int, Schedule]]] = []
    for number, part in enumerate(whole.kernels):
        varies = bool(part.launches) and part.by in program.leading
        _, largest = steps_of(program)
        upto = [step for step in sorted(rows) if step <= largest]
        chosen.append([(sizes_at(program, step)[part.by], rows[step][number]) for step in upto] if varies else [])
    return table.with_schedules(kernels, chosen)
