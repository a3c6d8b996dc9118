"""The order in which candidates are measured: the best first, but few that are alike among the first.

The model errs by more than neighbouring schedules differ, and it errs alike for candidates that are alike. So less is
learnt from forty schedules of one topology, which differ in a stage, than from the best of several topologies, tiles,
swaps, precisions, warps and stages.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Hashable, Sequence

from mugraph.ir.block import Candidate, Schedule

HEAD = 48
"""Candidates that are chosen for variety; the tuner measures fewer."""
TOPOLOGIES = 6
"""Distinct topologies among them: each costs a verification."""
_DEARER = {
    "topology": 1.012,
    "tiles": 1.05,
    "schedule": 1.12,
    "warps": 1.01,
    "stages": 1.01,
    "swap": 1.01,
    "precision": 1.05,
}
"""By how much each earlier candidate that shares a trait makes the next one look slower."""


def diverse(ranked: Sequence[Candidate]) -> list[Candidate]:
    """All candidates. The head is chosen greedily, by the estimate times a factor for each trait of earlier ones; the
    rest stay in their order.

    ranked: best first
    """
    head: list[Candidate] = []
    left = list(ranked)
    seen: Counter[tuple[str, Hashable]] = Counter()
    topologies: set[tuple[int, ...]] = set()
    while left and len(head) < HEAD:
        best: tuple[float, int] | None = None
        for number, candidate in enumerate(left):
            if best is not None and candidate.estimate_us >= best[0]:  # a factor is never less than 1
                break
            if len(topologies) >= TOPOLOGIES and candidate.topology not in topologies:
                continue
            us = candidate.estimate_us
            for trait in _traits(candidate):
                us *= _DEARER[trait[0]] ** min(seen[trait], 12)
            if best is None or us < best[0]:
                best = (us, number)
        if best is None:
            break
        chosen = left.pop(best[1])
        topologies.add(chosen.topology)
        seen.update(_traits(chosen))
        head.append(chosen)
    return [*head, *left]


def _traits(candidate: Candidate) -> list[tuple[str, Hashable]]:
    schedule = candidate.schedule
    return [
        ("topology", candidate.topology),
        ("tiles", tiles(schedule)),
        ("schedule", (tiles(schedule), schedule.num_warps, schedule.num_stages)),
        ("warps", schedule.num_warps),
        ("stages", schedule.num_stages),
        ("swap", schedule.swap),
        ("precision", (tiles(schedule), schedule.precision)),
    ]


def tiles(schedule: Schedule) -> Hashable:
    """Everything of a schedule but warps and stages."""
    return schedule.grid, tuple(schedule.loops.items()), schedule.swap
