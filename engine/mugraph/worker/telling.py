"""The events of a search as messages to the server."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from mugraph import events
from mugraph.protocol import messages as m
from mugraph.worker.documents import Known
from mugraph.worker.jobs import Job
from mugraph.worker.states import region_state, to_candidate


def told(job: Job, known: Known, numbers: Sequence[int], event: events.Event) -> Iterator[m.FromEngine]:
    """Takes note of it in the job, and in what is known of its document.

    numbers: of the document's regions that are searched, in the search's order
    """
    if isinstance(event, events.Done):
        job.message = "; ".join(event.result.errors)
        return
    if isinstance(event, events.Traced):
        return
    number, of, key = event.region, len(numbers), known.keys[numbers[event.region]]
    about = (job.request.id, job.uri, job.version)
    match event:
        case events.Searching():
            if job.searching != key:
                job.searching = key
                yield m.RegionChanged(*about, region_state(known, numbers[number], "searching"), number, of)
            what = f"searching {event.function}"
            yield m.Progress(*about, key, what, number, of, event.topologies, event.seconds)
        case events.Working():
            yield m.Progress(*about, key, event.what, number, of, done=event.done, total=event.of)
        case events.FirstHit():
            yield m.FirstHit(*about, key, event.seconds, len(event.block.block_ops))
        case events.Better():
            yield m.BetterHit(*about, key, to_candidate(event.kernel, event.candidate))
        case events.Another():
            yield m.AnotherHit(*about, key, to_candidate(event.kernel, event.candidate))
        case events.RegionDone():
            known.results[key] = event.result
            yield m.RegionChanged(*about, region_state(known, numbers[number]), number, of)
