"""The first answers of all regions of a file, before any region is searched for long.

Regions of few calls are begun first: to cut one of many may take longer than to search the others, which processes do
meanwhile. Each region's first cut comes first, then the cuts that have most in their search units, which are judged
against the first ones. Only then is what was cut short searched on (together.py).
"""

from __future__ import annotations

from collections.abc import Generator, Sequence

from mugraph.events import Event
from mugraph.solve.job import RegionJob
from mugraph.solve.together import Units


def begun(jobs: Sequence[RegionJob], units: Units | None) -> None:
    """Every job, and what there are processes for."""
    for job in sorted(jobs, key=lambda job: len(job.region.calls)):
        job.begin()
        if units is not None and units.answers_first:
            units.work(0.0)


def first_answers(jobs: Sequence[RegionJob], units: Units) -> Generator[Event, None, None]:
    """jobs: begun. Nothing where `units` gives no first answers."""
    if not units.answers_first:
        return
    for job in jobs:
        yield from job.first_answers()
    units.deepen()  # what is begun by now goes before
    for job in jobs:
        yield from job.further_answers()
