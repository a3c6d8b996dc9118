"""What a person is told of one search unit while it is solved: how far the search is, and its verified candidates."""

from __future__ import annotations

import time
from collections.abc import Iterator
from dataclasses import dataclass, replace
from math import inf

from mugraph.events import Another, Better, Considered, Event, FirstHit, Searching, Working
from mugraph.ir.block import BlockGraph, Candidate
from mugraph.ir.drawing.words import grid_words, launch_words, loop_words
from mugraph.ir.library import library_call
from mugraph.ir.mugraph import GraphKernel

_LEAST_GAIN = 0.999
"""A candidate is better if its estimate is less than this part of the best one. Topologies that differ only in where
a scale is applied differ by less."""
_WORTH_VERIFYING = 0.97
"""The same while the search runs, when a verification may be spent on a candidate that is not chosen later."""
_PROGRESS_S = 0.1
"""Between two events that say how far a search is."""


@dataclass(frozen=True)
class Place:
    """Which search unit of which region events speak of. name: of the kernel. beside_turned: PyTorch's convolutions run
    otherwise beside it than they were recorded"""

    region: int
    unit: int
    units: int
    function: str
    name: str
    beside_turned: bool = False


class Telling:
    """Makes the events of one search unit. Seconds count from when it is made."""

    def __init__(self, place: Place) -> None:
        self.place = place
        self.first_hit_s: float | None = None
        self._began = self._told = time.monotonic()
        self._best = inf
        self._topologies: set[tuple[int, ...]] = set()
        self._numbers: dict[tuple[str, float], int] = {}
        self._met: list[Considered] = []

    @property
    def seconds(self) -> float:
        return time.monotonic() - self._began

    @property
    def considered(self) -> tuple[Considered, ...]:
        """The candidates told of so far, in the order they were met."""
        return tuple(self._met)

    def searching(self, topologies: int, seconds: float | None = None) -> Searching:
        place = self.place
        seconds = self.seconds if seconds is None else seconds
        return Searching(place.region, place.unit, place.units, place.function, topologies, seconds)

    def progress(self, topologies: int) -> Iterator[Searching]:
        """How far the search is, if that was not told a moment ago."""
        now = time.monotonic()
        if now - self._told > _PROGRESS_S:
            self._told = now
            yield self.searching(topologies, now - self._began)

    def working(self, what: str, done: int, of: int) -> Working:
        return Working(self.place.region, what, done, of)

    def hit(self, block: BlockGraph) -> Iterator[FirstHit]:
        """The first topology that is right is told of once."""
        if self.first_hit_s is None:
            self.first_hit_s = self.seconds
            yield FirstHit(self.place.region, self.place.unit, block, self.first_hit_s)

    @property
    def best_us(self) -> float:
        """Estimated, of the best candidate told of; infinite without one."""
        return self._best

    def is_promising(self, candidate: Candidate) -> bool:
        """Whether it is expected to be so much faster than all before that it is worth a verification."""
        return self._gains(candidate, _WORTH_VERIFYING)

    def met(self, candidate: Candidate) -> Iterator[Event]:
        """A candidate that passed verification. It is told of if it is expected to be the fastest so far, or is the
        first of its topology."""
        better = self._gains(candidate, _LEAST_GAIN)
        if not better and candidate.topology in self._topologies:
            return
        self._topologies.add(candidate.topology)
        self._best = min(self._best, candidate.estimate_us)
        event = Better if better else Another
        yield event(self.place.region, self.place.unit, self.place.name, self._met[self._number(candidate)])

    def timed(self, candidate: Candidate, us: float) -> Another:
        """Microseconds on the device; of two runs the later one counts."""
        considered = self._change(candidate, measured_us=us)
        return Another(self.place.region, self.place.unit, self.place.name, considered)

    def chosen(self, candidate: Candidate) -> None:
        self._change(candidate, chosen=True)

    def _gains(self, candidate: Candidate, least: float) -> bool:
        return candidate.estimate_us < least * self._best

    def _number(self, candidate: Candidate) -> int:
        # Renamed for its kernel, a candidate is another object with the same words and estimate.
        key = _words(candidate), candidate.estimate_us
        if key not in self._numbers:
            self._numbers[key] = number = len(self._met)
            ops = sum(len(kernel.block.block_ops) for kernel in candidate.kernels)
            self._met.append(Considered(number, self.seconds, key[0], ops, candidate.estimate_us))
        return self._numbers[key]

    def _change(self, candidate: Candidate, **changes: object) -> Considered:
        number = self._number(candidate)
        self._met[number] = replace(self._met[number], **changes)  # pyright: ignore[reportArgumentType]
        return self._met[number]


def _words(candidate: Candidate) -> str:
    return ", then ".join(_kernel_words(kernel) for kernel in candidate.kernels)


def _kernel_words(candidate: Candidate) -> str:
    """`grid n/64, b/16: 64 blocks; for h: 4 × 256; 4 warps, 3 stages`, or `library mm`."""
    block, schedule = candidate.block, candidate.schedule
    if schedule.library:
        call = library_call(block)
        return f"library {call.function.rsplit('.', 1)[-1] if call is not None else 'kernel'}"
    loops = [loop_words(axis, block, schedule) for axis in schedule.loops]
    return "; ".join([grid_words(GraphKernel(block.name, block, schedule)), *loops, launch_words(schedule)])
