"""How many copies of a kernel's inputs keep the second-level cache cold."""

from __future__ import annotations

import sys
from dataclasses import dataclass, replace
from math import ceil

# Copies together hold this many times the cache, so that a copy is gone from it when its turn comes again.
CACHE_TIMES = 4
# A captured graph of more launches than this takes long to build and says nothing more.
MOST_COPIES = 192
# Below this the cost of one replay shows in the time of one launch.
LEAST_LAUNCHES = 24
# Inputs of this many times the cache: the part of them that survives in it is less than times repeat to.
ALONE_TIMES = 64
ENOUGH_US = 3000.0
"""Of a sample. A longer one says nothing more: what begins and ends it takes some microseconds."""
LONG_US = 500.0
"""A launch that takes as long is the device's time, not the host's."""
MOST_CALLS = 20


@dataclass(frozen=True, slots=True)
class Rotation:
    """copies: sets of inputs. launches: in one captured graph, copy i % copies for launch i. flush: the copies do not
    fill the cache, so it is overwritten before each replay, outside the time (every copy is then used once)."""

    copies: int
    launches: int
    flush: bool


def rotation(set_bytes: int, l2_bytes: int, room_bytes: int = sys.maxsize) -> Rotation:
    """For inputs of `set_bytes` together on a device with `l2_bytes` of second-level cache. room_bytes: that all copies
    may take; where it is one alone, the cache is overwritten before it is read again."""
    most = max(1, room_bytes // max(set_bytes, 1))
    needed = CACHE_TIMES * l2_bytes // max(set_bytes, 1) + 1
    if needed > min(MOST_COPIES, most):
        copies = min(MOST_COPIES, most)
        return Rotation(copies, copies, True)
    # One copy alone larger than the cache still alternates with another: a part of it would survive.
    copies = 1 if set_bytes >= ALONE_TIMES * l2_bytes else max(needed, 2)
    if copies > most:
        return Rotation(1, 1, True)
    return Rotation(copies, copies * ceil(LEAST_LAUNCHES / copies), False)


def shortened(plan: Rotation, us: float) -> Rotation:
    """With no more launches than a sample needs. us: microseconds that one takes, with the host's time for it"""
    if plan.flush or us < LONG_US:
        return plan
    wanted = plan.copies * ceil(ENOUGH_US / us / plan.copies)
    return replace(plan, launches=min(plan.launches, max(wanted, plan.copies)))


def calls_of(us: float) -> int:
    """How many calls make a sample: so many that waiting for the device at its end does not count. us: of one"""
    return MOST_CALLS if us <= 0 else min(MOST_CALLS, max(2, ceil(ENOUGH_US / us)))
