"""From a tensor program to scheduled candidates: topologies by search, then sizes for each (Mirage §4, MCFuser §4)."""

from mugraph.search.limits import Found, Limits, NotSearchable, Stats
from mugraph.search.run import Search, topologies

__all__ = ["Found", "Limits", "NotSearchable", "Search", "Stats", "topologies"]
