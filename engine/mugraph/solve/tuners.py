"""The tuner of a search unit. It chooses from what the search has found, and from other schedules of those kernels."""

from __future__ import annotations

from collections.abc import Callable, Hashable, Sequence

from mugraph.ir.block import Candidate
from mugraph.options import Bounds
from mugraph.search.schedules.neighbours import key, neighbours
from mugraph.search.schedules.parameters import Point
from mugraph.search.schedules.space import ScheduleSpace
from mugraph.targets import Target
from mugraph.tune.tuner import Variant
from mugraph.tune.tuners.choose import tuner_of
from mugraph.tune.tuners.model_then_walk import MEASURED, TRIALS, ModelThenWalk
from mugraph.tune.tuners.tuner import Tuner
from mugraph.tune.tuners.written import Written


def tuner_among(
    ranked: Sequence[Variant], variant: Callable[[Candidate], Variant | None], target: Target, bounds: Bounds
) -> Tuner[Variant]:
    """ranked:  the best by estimate first
    variant: writes a candidate's kernel; None where it cannot be written

    Raises ModuleNotFoundError where a package is missing that the tuner needs.
    """
    if bounds.tuner == "walk" or not ranked:
        return _walk(ranked, variant, target, bounds.trials)
    space = ScheduleSpace([one.candidate for one in ranked], target)
    places = [space.point(one.candidate) for one in ranked]
    known = {place: one for place, one in zip(places, ranked, strict=True) if place is not None}

    def write(point: Point) -> Variant | None:
        return known[point] if point in known else variant(space.candidate(point))

    return Written(tuner_of(bounds.tuner, space, list(known), bounds.trials), write)


def _walk(
    ranked: Sequence[Variant], variant: Callable[[Candidate], Variant | None], target: Target, trials: int
) -> ModelThenWalk[Variant]:
    """Of what lies around a candidate, no more is written than may be measured: to write all takes seconds."""
    written: dict[Hashable, Variant | None] = {_key(one.candidate): one for one in ranked}
    first = frozenset(_key(one.candidate) for one in ranked[:MEASURED])
    most = max(trials, TRIALS) - MEASURED

    def around(one: Variant) -> list[Variant]:
        found: list[Variant] = []
        for candidate in neighbours(one.candidate, target):
            which = _key(candidate)
            if which in first:  # it has been measured
                continue
            if which not in written:
                written[which] = variant(candidate)
            near = written[which]
            if near is not None:
                found.append(near)
            if len(found) == most:
                break
        return found

    return ModelThenWalk(
        ranked, around, lambda one: one.kernel.standalone(), lambda one: one.candidate.estimate_us, trials
    )


def _key(candidate: Candidate) -> Hashable:
    """What candidates of one program differ in."""
    return tuple((kernel.block.ops, key(kernel.schedule), kernel.schedule.library) for kernel in candidate.kernels)
