"""Memory planning (Mirage §6): where tensors lie that need not be there at the same time, as dynamic storage allocation
solved to optimality.

Each tensor has a size and a lifetime, from the step that writes it to the last one that reads it, both included. Two
whose lifetimes have a step in common may not overlap in memory. What is wanted is the least memory that holds all.

It is a search over the order of addresses. In some best plan every tensor lies as low as those below it allow: pushed
down in ascending order of address, none gets in the way of another. So tensors are placed one after the other, each at
the lowest address that is free for it, and never lower than the one before it. A branch ends where what is left, at any
one step, reaches as high as the best plan known; the search ends where a plan needs no more than is alive at one step.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from itertools import product

ALIGNED = 256
"""Bytes: where tensors begin, as those of PyTorch's allocator do at least."""
MOST_BRANCHES = 20_000
"""Of one search. Ten tensors take a few hundred as a rule."""


@dataclass(frozen=True)
class Lifetime:
    """Of one tensor. size: in bytes; first, last: steps, both included"""

    name: str
    size: int
    first: int
    last: int

    def meets(self, other: Lifetime) -> bool:
        return self.first <= other.last and other.first <= self.last


@dataclass(frozen=True)
class Placement:
    """offsets: bytes from the beginning; size: bytes that hold all; is_least: whether no plan needs fewer"""

    offsets: Mapping[str, int]
    size: int
    is_least: bool


@dataclass(frozen=True)
class Storage:
    """inside: tensor -> another one, which is not written yet while it lives, and how many bytes behind where that
    begins; shared: of the others, in one buffer"""

    inside: Mapping[str, tuple[str, int]]
    shared: Placement


def peak(lifetimes: Sequence[Lifetime]) -> int:
    """Bytes that are alive at one step, at most: no plan needs fewer."""
    return max(
        (sum(one.size for one in lifetimes if one.first <= at <= one.last) for at in _steps(lifetimes)), default=0
    )


def aligned(size: int, to: int = ALIGNED) -> int:
    return -(-size // to) * to


def placed(lifetimes: Sequence[Lifetime], branches: int = MOST_BRANCHES) -> Placement:
    """The plan that needs the fewest bytes; the best that is found in so many branches, where there are more. Sizes are
    taken as they are: multiples of what tensors have to begin at."""
    return _Search(tuple(lifetimes), branches).placement()


def stored(scratch: Sequence[Lifetime], results: Sequence[Lifetime] = (), branches: int = MOST_BRANCHES) -> Storage:
    """The plan with the smallest buffer. results: tensors with memory of their own, in which scratch may lie while they
    are not written yet (their lifetimes end after the last step)"""
    free = [tuple(one for one in results if one.size >= own.size and not one.meets(own)) for own in scratch]
    best: Storage | None = None
    choices = product(*((None, *hosts) for hosts in free))
    for _, choice in zip(range(max(1, branches // 100)), choices, strict=False):
        rest = [own for own, host in zip(scratch, choice, strict=True) if host is None]
        if best is not None and peak(rest) >= best.shared.size:
            continue
        inside: dict[str, tuple[str, int]] = {}
        for host in results:
            guests = [own for own, its in zip(scratch, choice, strict=True) if its is host]
            there = placed(guests, branches)
            if there.size > host.size:
                break
            inside |= {name: (host.name, offset) for name, offset in there.offsets.items()}
        else:
            shared = placed(rest, branches)
            if best is None or shared.size < best.shared.size:
                best = Storage(inside, shared)
    assert best is not None  # the first choice has all in the buffer
    return best


def _steps(lifetimes: Sequence[Lifetime]) -> set[int]:
    """All that differ: what is alive changes only where a lifetime begins."""
    return {one.first for one in lifetimes}


@dataclass
class _Search:
    lifetimes: tuple[Lifetime, ...]
    branches: int
    best: int = 0
    offsets: dict[str, int] = field(default_factory=dict[str, int])

    def placement(self) -> Placement:
        least = peak(self.lifetimes)
        self._begin()
        if self.best > least:
            # A tensor of no bytes is in nobody's way.
            whole = [one for one in self.lifetimes if one.size]
            self._place({}, whole, 0, least)
        return Placement(self.offsets, self.best, self.best == least or self.branches > 0)

    def _begin(self) -> None:
        """A plan to begin with: the largest first, each where it fits."""
        found: dict[Lifetime, int] = {}
        for one in sorted(self.lifetimes, key=lambda one: (-one.size, one.first, one.name)):
            found[one] = _lowest(one, found)
        self._keep(found)

    def _keep(self, found: Mapping[Lifetime, int]) -> None:
        self.best = max((offset + one.size for one, offset in found.items()), default=0)
        self.offsets = {one.name: found.get(one, 0) for one in self.lifetimes}

    def _place(self, found: dict[Lifetime, int], left: list[Lifetime], least_offset: int, least: int) -> None:
        """found: where tensors lie; left: the others, which lie at `least_offset` at least"""
        if not left:
            self._keep(found)
            return
        if self._reach(found, left, least_offset) >= self.best:
            return
        seen: set[tuple[int, int, int]] = set()
        options = sorted(((_lowest(one, found), -one.size, at) for at, one in enumerate(left)))
        for offset, _, at in options:
            one = left[at]
            alike = (one.size, one.first, one.last)
            if offset < least_offset or offset + one.size >= self.best or alike in seen:
                continue
            seen.add(alike)
            if self.best == least or self.branches <= 0:
                return
            self.branches -= 1
            self._place({**found, one: offset}, left[:at] + left[at + 1 :], offset, least)

    def _reach(self, found: Mapping[Lifetime, int], left: Sequence[Lifetime], least_offset: int) -> int:
        """How high what is left reaches at least: at each step above all that is there already beyond that address."""
        most = 0
        for at in _steps(left):
            beyond = sum(
                offset + one.size - max(offset, least_offset)
                for one, offset in found.items()
                if one.first <= at <= one.last and offset + one.size > least_offset
            )
            most = max(most, least_offset + beyond + sum(one.size for one in left if one.first <= at <= one.last))
        return most


def _lowest(one: Lifetime, found: Mapping[Lifetime, int]) -> int:
    """The lowest address at which it overlaps with nothing that lives when it does."""
    taken = sorted((offset, offset + other.size) for other, offset in found.items() if other.size and one.meets(other))
    end = 0
    for first, last in taken:
        if first - end >= one.size:
            break
        end = max(end, last)
    return end
