"""The search: all loop nests in turn, a piece of work at a time.

Turns are given by work done, not by a clock, so that the result does not depend on how busy the machine is. First every
nest gets turns until its first topology; then all nests saturate; then topologies are read off. In each of the three
phases the nest that has had least of its share is next. The clock ends a search only as a last resort.
"""

from __future__ import annotations

import itertools
import time
from collections import Counter
from collections.abc import Callable, Iterator, Sequence

from mugraph.ir.program import TensorProgram
from mugraph.search.topologies.frame import check
from mugraph.search.topologies.limits import Found, Limits, Stats, never
from mugraph.search.topologies.nest import Account, Nest
from mugraph.search.uncut import uncut

FIRST_SHARE = 0.25
"""Part of the work until which only first topologies are looked for."""
SATURATION_SHARE = 0.6
"""Part of the work after which nests no longer saturate, and topologies are read off what has been reached."""
HIT_WEIGHT = 3
"""How many times the share of another nest a nest with a topology gets: it promises more of them."""
_TURN = 5_000
"""Work of one turn."""
_ENDS = ("memory", "values", "work", "topologies")


class Search:
    """All topologies of a program: single-kernel block graphs with at most `limits.max_loops` loops.

    `run()` yields them as they are found, the first of each loop nest before anything else; `stats` says how it ended
    (and, while it runs, how far it is). Raises NotSearchable for programs the search does not cover.
    """

    def __init__(
        self, program: TensorProgram, limits: Limits | None = None, cancelled: Callable[[], bool] = never
    ) -> None:
        check(program)
        self.program, self.limits, self._cancelled = program, limits or Limits(), cancelled
        self._began = time.monotonic()
        self._seconds: float | None = None
        self._count = 0
        self._nests: list[Nest] = []
        self._stopped_by = ""

    @property
    def stats(self) -> Stats:
        running = self._seconds is None
        seconds = time.monotonic() - self._began if self._seconds is None else self._seconds
        accounts = [nest.account for nest in self._nests]
        return summary(accounts, self._count, self._stopped_by, seconds, running=running)

    def run(self) -> Iterator[Found]:
        """Topologies, each once; ends when the space, the limits or the caller ends it."""
        self._began = time.monotonic()
        for loops in loop_sets(self.program, self.limits):
            self._nests.append(Nest(self.program, loops, self.limits))
        work = self.limits.work
        yield from self._turns(self._nests, int(work * FIRST_SHARE), until_hit=True)
        yield from self._turns(self._nests, int(work * SATURATION_SHARE))
        for nest in self._nests:
            nest.stop_saturating("work")
        yield from self._turns(self._nests, work)
        self._seconds = time.monotonic() - self._began

    def _turns(self, nests: Sequence[Nest], work: int, until_hit: bool = False) -> Iterator[Found]:
        """Turns, until so much work is done in all. The nest that has had least of its share is next."""
        while self._work() < work:
            waiting = [nest for nest in nests if not nest.over and not (until_hit and nest.hit)]
            if not waiting:
                return
            nest = min(waiting, key=lambda nest: nest.work / (HIT_WEIGHT if nest.hit else 1))
            for block in nest.turn(_TURN):
                if block is not None:
                    self._count += 1
                    yield Found(block, time.monotonic() - self._began)
                if self._stop():
                    return
                if until_hit and nest.hit:
                    break
            if sum(nest.account.bytes for nest in nests if not nest.over) > self.limits.memory:
                for nest in nests:
                    nest.stop_saturating("memory")

    # ------------------------------------------------------------------ bounds

    def _work(self) -> int:
        return sum(nest.work for nest in self._nests)

    def _stop(self) -> bool:
        if not self._stopped_by and self._cancelled():
            self._stopped_by = "cancelled"
        elif not self._stopped_by and time.monotonic() - self._began > self.limits.seconds:
            self._stopped_by = "time"
        return bool(self._stopped_by)


def loop_sets(program: TensorProgram, limits: Limits) -> list[tuple[str, ...]]:
    """Sets of axes to loop over: none; each axis that the program reduces and does not return; pairs of them.

    The taps of a window are looped over together: they are few, and a product's tile cannot hold them beside another
    axis.
    """
    (output,) = program.outputs
    free = set(program.op(output).axes)
    reduced = {axis for op in program.ops for axis in op.over} - free
    taps = sorted(frozenset(axis for tensor in program.tensors for axis in tensor.taps) & reduced)
    single = [(axis,) for axis in sorted(reduced.difference(taps, uncut(program, limits)))]
    units = [*single, tuple(taps)] if taps else single
    chosen = (s for n in range(limits.max_loops + 1) for s in itertools.combinations(units, n))
    return [tuple(sorted(axis for unit in several for axis in unit)) for several in chosen]


def summary(
    accounts: Sequence[Account], count: int, ended_by: str | None, seconds: float, *, running: bool = False
) -> Stats:
    """The statistics of a search with these nests and so many topologies. ended_by: what stopped it from outside, if
    anything"""
    complete_to = min((account.complete_to for account in accounts), default=0)
    if running:
        end = "running"
    else:
        reasons = {account.ended_by for account in accounts}
        rest = "size" if any(account.bounded for account in accounts) else "space"
        end = ended_by or next((reason for reason in _ENDS if reason in reasons), rest)
    return Stats(
        count,
        sum(account.values for account in accounts),
        bool(accounts) and all(account.complete for account in accounts),
        complete_to,
        end,
        dict(sum((account.pruned for account in accounts), Counter[str]())),
        seconds,
    )


def topologies(
    program: TensorProgram, limits: Limits | None = None, cancelled: Callable[[], bool] = never
) -> Iterator[Found]:
    """Block graphs equal to the program, as they are found. For how the search ended use `Search` itself."""
    return Search(program, limits, cancelled).run()
