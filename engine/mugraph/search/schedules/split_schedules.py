"""Two kernels in place of one: which reductions to split across the grid, into how many parts, with which tiles.

A second launch costs a microsecond or two, and the unfinished sums a trip through memory. A grid too small for the
device costs more. Both are estimates of one model (cost.py), so splits are ranked beside single kernels.
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterable
from dataclasses import replace
from typing import Protocol

from mugraph.ir.block import BlockGraph, Candidate
from mugraph.search.schedules.diverse import diverse
from mugraph.search.schedules.moments import moments_cuts
from mugraph.search.schedules.sizes import ScheduleLimits, best, looks, schedules
from mugraph.search.schedules.splits import cuts
from mugraph.search.schedules.varying_parts import OfAnySize, Ragged, divides_badly, of_part, parts_in
from mugraph.search.topologies.limits import never
from mugraph.targets import Target

CUTS = 6
"""Cuts, the best by a coarse look, for which all numbers of parts are looked at."""
MOST_PARTS = 1024
"""Of a reduction without products."""
OTHERS = 24
"""Topologies that are slower by estimate than `most` candidates of others, and are kept with one candidate each."""
SPLITS = 6
"""Pairs of kernels all of whose schedules are estimated."""


class AnyCut(Protocol):
    """Where a topology can be cut in two."""

    @property
    def axis(self) -> str: ...

    def counts(self, most: int) -> list[int]:
        """Numbers of parts worth a look. most: where there are no products"""
        ...

    def pairs(self, count: int) -> list[tuple[BlockGraph, BlockGraph]]:
        """Both kernels, in each way there is."""
        ...


def kernel_candidates(
    blocks: Iterable[BlockGraph],
    target: Target,
    limits: ScheduleLimits | None = None,
    most: int = 256,
    varying: Collection[str] = (),
    over: Callable[[], bool] = never,
) -> list[Candidate]:
    """The best candidates of many topologies, each as one kernel or split in two. The fastest by estimate comes first;
    the head varies, the rest follows by estimate.

    varying: axes whose size varies: their parts are as long as a launch chooses
    over: what there is then is all; a kernel that was found has a schedule by then, if it fits on the device
    """
    blocks = list(blocks)
    found = best(blocks, target, limits, over)
    if not found or not over():
        found += split_candidates(blocks, target, limits, varying, over)
    found.sort(key=lambda candidate: candidate.estimate_us)
    return diverse([*found[:most], *_of_other_topologies(found[:most], found[most:])])


def _of_other_topologies(chosen: Iterable[Candidate], left: Iterable[Candidate]) -> list[Candidate]:
    """The best one of each topology that has none among those chosen: all of these may lose digits."""
    known = {candidate.topology for candidate in chosen}
    others: dict[tuple[int, ...], Candidate] = {}
    for candidate in left:
        if candidate.topology not in known:
            others.setdefault(candidate.topology, candidate)
    return list(others.values())[:OTHERS]


def split_candidates(
    blocks: Iterable[BlockGraph],
    target: Target,
    limits: ScheduleLimits | None = None,
    varying: Collection[str] = (),
    over: Callable[[], bool] = never,
) -> list[Candidate]:
    """Pairs of kernels, fastest by estimate first: a first kernel whose `then` finishes it. Arguments as of
    `kernel_candidates`."""
    limits = limits or ScheduleLimits()
    every: list[AnyCut] = [cut for block in blocks for cut in (*cuts(block), *moments_cuts(block))]
    every = [cut for cut in every if cut.axis not in varying]
    for block in blocks:
        every += [OfAnySize(cut) for cut in cuts(block) if cut.axis in varying]
        every += [
            Ragged(cut) for cut in cuts(block) if cut.axis not in varying and divides_badly(block.sizes[cut.axis])
        ]
    pairs = _promising(every, target, limits, over)
    found: list[Candidate] = []
    for cut, first, then in pairs:
        if over():
            break
        parts = parts_in(first, [cut.axis]) if isinstance(cut, OfAnySize) else None
        made = schedules(first, target, limits) if parts is None else of_part(first, *parts, target, limits)
        found += [with_then(candidate, then) for candidate in made]
    return sorted(found, key=lambda candidate: candidate.estimate_us)


def with_then(first: Candidate, then: Candidate) -> Candidate:
    """A kernel and one that follows it, each estimated by itself."""
    return replace(first, estimate_us=first.estimate_us + then.estimate_us, then=then)


def alone(candidate: Candidate) -> Candidate:
    """The first kernel without those that follow it, with its own estimate."""
    if candidate.then is None:
        return candidate
    return replace(candidate, estimate_us=candidate.estimate_us - candidate.then.estimate_us, then=None)


def _promising(
    every: list[AnyCut], target: Target, limits: ScheduleLimits, over: Callable[[], bool]
) -> list[tuple[AnyCut, BlockGraph, Candidate]]:
    """The most promising first kernels, each with its best second one. All numbers of parts are tried for the cuts that
    look best in the middle number."""
    middle = [(cut, counts[len(counts) // 2]) for cut in every if (counts := cut.counts(MOST_PARTS))]
    looked = sorted(_looked(middle, target, limits, over), key=lambda look: look[0])
    chosen = list({id(cut): cut for _, cut, _, _ in looked}.values())[:CUTS]
    pairs: list[tuple[AnyCut, BlockGraph, Candidate]] = []
    finished: dict[int, list[Candidate]] = {}  # id of a second kernel -> its best schedule, if one fits
    looked = _looked([(cut, n) for cut in chosen for n in cut.counts(MOST_PARTS)], target, limits, over)
    for _, cut, first, second in sorted(looked, key=lambda look: look[0]):
        if id(second) not in finished:
            finished[id(second)] = schedules(second, target, limits)[:1]
        pairs.extend((cut, first, then) for then in finished[id(second)])
        if len(pairs) >= SPLITS or over():
            break
    return pairs


def _has_its_axes(block: BlockGraph) -> bool:
    """Does some tensor of the kernel run along each axis that its operators do? What counts an axis, as a mean along
    one whose size varies does, may be left in a kernel that reads nothing along it."""
    return all(block.sizes.keys() >= {*op.axes, *op.over} for op in block.ops)


def _looked(
    pairs: list[tuple[AnyCut, int]], target: Target, limits: ScheduleLimits, over: Callable[[], bool]
) -> list[tuple[float, AnyCut, BlockGraph, BlockGraph]]:
    """Cuts into so many parts, each with and without a loop over its part, that fit on the device: a coarse estimate of
    both kernels, and the kernels."""
    made = [(cut, *kernels) for cut, count in pairs for kernels in cut.pairs(count) if all(map(_has_its_axes, kernels))]
    every = {id(block): block for _, *both in made for block in both}
    us = {id(block): estimate for estimate, block in looks(every.values(), target, limits, over)}
    return [
        (us[id(first)] + us[id(second)], cut, first, second)
        for cut, first, second in made
        if id(first) in us and id(second) in us
    ]
