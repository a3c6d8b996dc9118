"""All tuners with all seeds on one operator, side by side: what several ask for is measured once, and together."""

from __future__ import annotations

import time
from collections.abc import Hashable, Sequence
from dataclasses import dataclass

from mugraph.research.tuners.prepared import Prepared
from mugraph.research.tuners.runs import WITHOUT_CHANCE, Compared, Run, made
from mugraph.research.tuners.times import OutOfTime, Times
from mugraph.search.schedules.parameters import Point
from mugraph.tune.tuners.tuner import Tuner


@dataclass
class _Running:
    run: Run
    tuner: Tuner[Point]
    points: list[Point]


def compare(
    prepared: Prepared, found: Compared, tuners: Sequence[str], seeds: int, trials: int, times: Times, until: float
) -> None:
    """Adds the runs that `found` lacks. What it has of an unfinished one comes again, from the times that are known.

    until: no batch is begun later (time.monotonic). Raises times.OutOfTime.
    """
    wanted = [(name, seed) for name in tuners for seed in range(1 if name in WITHOUT_CHANCE else seeds)]
    done = {(run.tuner, run.seed) for run in found.runs if run.done}
    found.runs = [run for run in found.runs if run.done]
    new = [pair for pair in wanted if pair not in done]
    asked: set[Hashable] = set()
    while new:
        running = [_Running(Run(name, seed), made(name, prepared, trials, seed), []) for name, seed in new]
        _run(prepared, found, running, trials, times, until)
        asked |= {prepared.space.key(point) for one in running for point in one.points}
        found.asked = max(found.asked, len(asked), len(found.times))
        fastest = {prepared.key(point): point for one in running if (point := _fastest(one)) is not None}
        wrong = set(times.wrong(prepared, found, fastest))
        good = [one for one in running if wrong.isdisjoint(map(prepared.key, one.points))]
        for one in good:
            one.run.done = True
        found.runs += [one.run for one in good]
        # Those that took a wrong kernel for the fastest, or learnt from it, begin again.
        new = [(one.run.tuner, one.run.seed) for one in running if not one.run.done]


def _run(
    prepared: Prepared, found: Compared, running: Sequence[_Running], trials: int, times: Times, until: float
) -> None:
    going = list(running)
    while going:
        if time.monotonic() > until:
            raise OutOfTime
        batches: list[tuple[_Running, Sequence[Point]]] = []
        for one in going:
            asked = list(one.tuner.ask())[: trials - len(one.points)]
            if asked:
                batches.append((one, asked))
        every = dict.fromkeys(point for _, asked in batches for point in asked)
        us = times.of(prepared, found, list(every))
        for one, asked in batches:
            one.tuner.tell([(point, us[point]) for point in asked])
            one.points += asked
            one.run.us += [us[point] for point in asked]
        going = [one for one, _ in batches if len(one.points) < trials]


def _fastest(one: _Running) -> Point | None:
    known = [(us, at) for at, us in enumerate(one.run.us) if us is not None]
    return one.points[min(known)[1]] if known else None
