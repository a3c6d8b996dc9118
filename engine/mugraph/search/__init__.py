"""From a tensor program to scheduled candidates: topologies by search, then sizes for each (Mirage §4, MCFuser §4)."""

from mugraph.search.run import Search, topologies
from mugraph.search.schedules.cost import estimate_library_us, estimate_us
from mugraph.search.schedules.sizes import ScheduleLimits, candidates, schedules
from mugraph.search.topologies.limits import Found, Limits, NotSearchable, Stats

__all__ = [
    "Found",
    "Limits",
    "NotSearchable",
    "ScheduleLimits",
    "Search",
    "Stats",
    "candidates",
    "estimate_library_us",
    "estimate_us",
    "schedules",
    "topologies",
]
