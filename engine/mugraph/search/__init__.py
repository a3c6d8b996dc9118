"""From a tensor program to scheduled candidates: topologies by search, then sizes for each (Mirage §4, MCFuser §4)."""

from mugraph.search.cost import estimate_library_us, estimate_us
from mugraph.search.limits import Found, Limits, NotSearchable, Stats
from mugraph.search.run import Search, topologies
from mugraph.search.schedules import ScheduleLimits, candidates, schedules

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
