"""The way of a search: its verified candidates as a person is told of them, in the order they are met."""

from __future__ import annotations

import time
from dataclasses import replace
from math import inf

from mugraph.events import Considered
from mugraph.ir.block import BlockGraph, Candidate
from mugraph.ir.drawing.words import grid_words, launch_words, loop_words
from mugraph.ir.mugraph import GraphKernel
from mugraph.ir.target import Target
from mugraph.search.schedules.sizes import Looks

_LEAST_GAIN = 0.999
"""Of two estimates the lower one is an improvement from here on; topologies that differ in the place of a scale do by
less."""
_WORTH_VERIFYING = 0.97
"""The same while the search runs, where a verification is spent on what may not be chosen later."""


class Trail:
    """Of one search unit. Seconds count from when it is made."""

    def __init__(self, target: Target) -> None:
        self._began = time.monotonic()
        self._looks = Looks(target)
        self._best = inf
        self._topologies: set[tuple[int, ...]] = set()
        self._numbers: dict[tuple[str, float], int] = {}
        self._met: list[Considered] = []

    @property
    def considered(self) -> tuple[Considered, ...]:
        return tuple(self._met)

    def promising(self, block: BlockGraph) -> Candidate | None:
        """The topology with a schedule, if a coarse look expects more of it than of all before."""
        candidate = self._looks.at(block)
        return candidate if candidate is not None and self._gains(candidate, _WORTH_VERIFYING) else None

    def add(self, candidate: Candidate) -> tuple[Considered, bool] | None:
        """One that passed verification, and whether it is expected to be the fastest so far. None where it is not, and
        is not the first of its topology either."""
        better = self._gains(candidate)
        if not better and candidate.topology in self._topologies:
            return None
        self._topologies.add(candidate.topology)
        self._best = min(self._best, candidate.estimate_us)
        return self._met[self._place(candidate)], better

    def timed(self, candidate: Candidate, us: float) -> Considered:
        """Microseconds on the device; of two runs the later one counts."""
        return self._change(candidate, measured_us=us)

    def chosen(self, candidate: Candidate) -> Considered:
        return self._change(candidate, chosen=True)

    def _gains(self, candidate: Candidate, least: float = _LEAST_GAIN) -> bool:
        return candidate.estimate_us < least * self._best

    def _place(self, candidate: Candidate) -> int:
        # Renamed for its kernel a candidate is another object, of the same words and estimate.
        key = _words(candidate), candidate.estimate_us
        if key not in self._numbers:
            self._numbers[key] = number = len(self._met)
            ops = sum(len(kernel.block.block_ops) for kernel in candidate.kernels)
            self._met.append(Considered(number, time.monotonic() - self._began, key[0], ops, candidate.estimate_us))
        return self._numbers[key]

    def _change(self, candidate: Candidate, **changes: object) -> Considered:
        number = self._place(candidate)
        self._met[number] = replace(self._met[number], **changes)  # pyright: ignore[reportArgumentType]
        return self._met[number]


def _words(candidate: Candidate) -> str:
    return ", then ".join(_kernel_words(kernel) for kernel in candidate.kernels)


def _kernel_words(candidate: Candidate) -> str:
    """`grid n/64, b/16: 64 blocks; for h: 4 × 256; 4 warps, 3 stages`, or `library product`."""
    block, schedule = candidate.block, candidate.schedule
    if schedule.library:
        return "library product"
    loops = [loop_words(axis, block, schedule) for axis in schedule.loops]
    return "; ".join([grid_words(GraphKernel(block.name, block, schedule)), *loops, launch_words(schedule)])
