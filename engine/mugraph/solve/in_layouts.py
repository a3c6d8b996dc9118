"""One region, searched with its images in each order of memory that may be faster; the fastest result of all."""

from __future__ import annotations

from collections.abc import Callable, Generator, Iterable
from dataclasses import dataclass
from functools import reduce
from typing import Protocol

from mugraph.events import Event, RegionResult
from mugraph.solve.cuts import Cuts
from mugraph.solve.layouts import are_unknown, faster, gain_of, is_refused, is_settled, takes_tf32
from mugraph.solve.tools import Tools
from mugraph.units.layouts import Layout


class Search(Protocol):
    """Of the region, cut as the cuts say. at_first: no further than the first cut"""

    def __call__(self, *, at_first: bool = False) -> Generator[Event, None, RegionResult]: ...


@dataclass(frozen=True)
class InLayouts:
    """search: with the choice that is the cuts'"""

    cuts: Cuts
    tools: Tools
    cancelled: Callable[[], bool]
    search: Search

    def fastest(self) -> Generator[Event, None, RegionResult]:
        """Without a GPU, of the choice that is expected to be the fastest. What is refused for its digits is tried once
        more, in the code's own order and with kernels that keep them."""
        cuts, expected = self.cuts, self.cuts.layouts()
        measures = self.tools.measurer is not None
        sketched = (yield from self._sketched(expected)) if measures and are_unknown(expected) else {}
        cuts.turned, *others = sorted(expected, key=lambda one: gain_of(sketched.get(one)), reverse=True)
        best, of_best = (yield from self.search()), cuts.turned
        best = reduce(faster, sketched.values(), best)
        seen = [cuts.calls()]
        for layout in others if measures else ():
            if self._is_over:
                break
            if is_settled(best, layout, expected[layout], expected[of_best]):
                continue
            cuts.turned = layout
            calls = cuts.calls()
            if calls in seen:
                continue
            seen.append(calls)
            found = yield from self.search()
            if faster(best, found) is found:
                best, of_best = found, layout
        if not measures or self._is_over or not is_refused(best):
            return best
        cuts.turned = frozenset()
        if cuts.calls() in seen and not any(map(takes_tf32, cuts.of()[1])):
            return best
        cuts.exact = True
        return faster(best, (yield from self.search()))

    def _sketched(self, layouts: Iterable[Layout]) -> Generator[Event, None, dict[Layout, RegionResult]]:
        """What each choice comes to whose first cut is quickly solved: with its convolutions left to PyTorch. Which
        order is faster for these decides more than what kernels of ours gain over them, and a file has not the time to
        search everything in each."""
        found: dict[Layout, RegionResult] = {}
        for layout in layouts:
            self.cuts.turned = layout
            whole = self.cuts.of()
            if self.cuts.first(whole)[1] != whole[1] and not self._is_over:
                found[layout] = yield from self.search(at_first=True)
        return found

    @property
    def _is_over(self) -> bool:
        return self.tools.file_time.is_over or self.cancelled()
