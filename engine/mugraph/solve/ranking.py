"""The candidates of one search unit, verified and ranked: those of one kernel first, then kernel graphs of several."""

from __future__ import annotations

from collections.abc import Callable, Generator, Sequence
from dataclasses import dataclass
from math import inf

from mugraph.events import Event, SearchReport
from mugraph.ir.block import BlockGraph, Candidate
from mugraph.ir.program import TensorProgram
from mugraph.options import Bounds
from mugraph.search.schedules.diverse import diverse
from mugraph.search.schedules.sizes import Looks
from mugraph.search.schedules.split_schedules import kernel_candidates
from mugraph.search.topologies.limits import NotSearchable
from mugraph.sizes.borders import at_step_of, powers
from mugraph.solve.ending import NO_END, Ending
from mugraph.solve.one_kernel import is_level, topologies_of_one
from mugraph.solve.several_kernels import kernel_graphs
from mugraph.solve.telling import Telling
from mugraph.solve.tools import Tools
from mugraph.solve.verdicts import Verdicts
from mugraph.verification.verdict import Verdict

VERIFIED = 6
"""Distinct topologies, the best by estimate, that are verified and scheduled; the rest would not be chosen."""
TRIED = 24
"""Topologies verified at most: a search whose best two dozen are wrong has something worse than bad luck."""

AT_SMALLER = 2
"""Topologies that are verified for each of a few smaller sizes."""
LOOKED_AT = 48
"""Topologies, the best at a size in the middle, that are looked at for the others: hundreds differ in the place of a
scale, and are as far behind there."""

Judged = tuple[Candidate, Verdict]


@dataclass(frozen=True)
class Ranked:
    """Candidates whose topologies passed, best first, each with its verdict. reason: why there is none. at_smaller: of
    sizes in a range, those that are the best at some that are smaller than the largest, where they may be nothing"""

    candidates: tuple[Judged, ...]
    report: SearchReport
    reason: str | None = None
    at_smaller: tuple[Judged, ...] = ()

    @property
    def judged(self) -> tuple[Judged, ...]:
        """All, those that are good at small sizes first."""
        return (*self.at_smaller, *self.candidates)


def ranked_candidates(
    program: TensorProgram,
    telling: Telling,
    tools: Tools,
    bounds: Bounds,
    cancelled: Callable[[], bool],
    worth_us: float = inf,
    ending: Ending = NO_END,
) -> Generator[Event, None, Ranked]:
    """Search for one kernel, schedule, search for several, verify: each candidate is told of as soon as it is known to
    be right.

    worth_us: of candidates that are estimated to take as long, the best alone is wanted
    ending: near it, what is right so far is all
    """
    yield telling.searching(0, 0.0)
    verdicts = Verdicts(program, tools.on, tools.verdicts)
    try:
        blocks, stats = yield from topologies_of_one(program, tools, bounds, cancelled, verdicts, telling, ending)
    except NotSearchable as error:
        return Ranked((), SearchReport(total_s=telling.seconds, complete=False), str(error))
    every = kernel_candidates(blocks, tools.target, varying=program.least, over=lambda: ending.is_near)
    hurried = ending.is_near
    best = yield from _first_right(every, verdicts, telling)
    several, out_of_time = list[Candidate](), False
    if not program.is_copy and not is_level(program, telling, tools.target):
        several, out_of_time = yield from kernel_graphs(
            program, blocks, every, best, tools, bounds, cancelled, verdicts, telling, ending
        )
    if several:
        every = diverse(sorted([*every, *several], key=lambda candidate: candidate.estimate_us))
    passed, cut_short = yield from _best_right(every, verdicts, telling, worth_us, ending)
    report = SearchReport(
        telling.first_hit_s,
        telling.seconds,
        stats.topologies,
        len(every),
        stats.complete,
        stats.complete_to,
        stats.ended_by,
        stats.pruned,
        out_of_time or cut_short or hurried or stats.ended_by == "time",
    )
    reason = None if passed else _nothing(len(blocks), every, verdicts, report)
    if not every and blocks and out_of_time:
        reason = f"{reason}, and the search for several that compute it together ended by time"
    smaller = _best_at_smaller(program, blocks, verdicts, tools) if passed and not ending.is_near else []
    return Ranked(tuple(passed), report, reason, tuple(smaller))


def _best_at_smaller(
    program: TensorProgram, blocks: Sequence[BlockGraph], verdicts: Verdicts, tools: Tools
) -> list[Judged]:
    """Of a program with a range, the topologies of one kernel that a coarse look finds the best at smaller sizes, where
    a kernel may hold what it has to walk at the largest."""
    steps, left = powers(program), blocks
    found: dict[int, Judged] = {}
    for step in dict.fromkeys(steps[len(steps) * part // 4] for part in (2, 1, 3) if steps):
        look = Looks(tools.target)
        looked = ((look.at(at_step_of(program, block, step)), block) for block in left)
        best = sorted(((one, block) for one, block in looked if one is not None), key=lambda two: two[0].estimate_us)
        left = [block for _, block in best[:LOOKED_AT]]
        for one, block in best[:AT_SMALLER]:
            verdict = verdicts.of_block(block)
            if verdict.passed:
                found.setdefault(id(block), (Candidate(block, one.schedule, one.estimate_us), verdict))
    return list(found.values())


def _first_right(
    every: Sequence[Candidate], verdicts: Verdicts, telling: Telling
) -> Generator[Event, None, Candidate | None]:
    """The best candidate that is right: one to tell of before kernel graphs are looked for."""
    for candidate in every:
        if len(verdicts) >= TRIED:
            break
        yield telling.working(f"verifying {telling.place.function}", 0, VERIFIED)
        if verdicts.of(candidate).passed:
            yield from telling.hit(candidate.block)
            yield from telling.met(candidate)
            return candidate
    return None


def _best_right(
    every: Sequence[Candidate], verdicts: Verdicts, telling: Telling, worth_us: float, ending: Ending
) -> Generator[Event, None, tuple[list[Judged], bool]]:
    """All candidates of the best topologies that are right; and whether some were left out for want of time."""
    passed: list[Judged] = []
    cut_short = False
    good: set[tuple[int, ...]] = set()
    for candidate in every:
        key = candidate.topology
        if candidate not in verdicts:
            if passed and candidate.estimate_us >= worth_us:
                continue
            if len(good) >= VERIFIED or len(verdicts) >= TRIED:
                continue
            if passed and ending.is_near:
                cut_short = True
                continue
            yield telling.working(f"verifying {telling.place.function}", len(good), VERIFIED)
        verdict = verdicts.of(candidate)
        if verdict.passed and (key in good or len(good) < VERIFIED):
            yield from telling.met(candidate)
            good.add(key)
            passed.append((candidate, verdict))
    return passed, cut_short


def _nothing(blocks: int, every: Sequence[Candidate], verdicts: Verdicts, report: SearchReport) -> str:
    """Why there is no candidate, in one sentence. blocks: how many topologies of one kernel were found"""
    if not blocks:
        end = f"all of up to {report.complete_to} operators were searched; it ended by {report.ended_by}"
        return f"no single kernel that computes it was found ({end})"
    if not every:
        return f"none of the {blocks} kernels found fits on the device"
    return f"none of the kernels found passed verification ({verdicts.first_wrong})"
