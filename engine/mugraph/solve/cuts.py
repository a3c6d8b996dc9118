"""The cuts of one region: with images in each order in memory, with calls left to PyTorch, with kernels that keep all
digits."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field

from mugraph.ir.calls import Call
from mugraph.ir.region import Part, Region, SearchUnit
from mugraph.solve.divisions import all_left
from mugraph.solve.layouts import as_computed, exactly, expected_us, layouts, windowed
from mugraph.targets import Target
from mugraph.units.layouts import FASTER, WHOLE, Layout
from mugraph.units.region_units import cut_region

Cut = tuple[Region, tuple[Part, ...]]
"""A region with what is known of what its parts make, and its parts."""


@dataclass
class Cuts:
    """recorded: the region. turned, exact: of the cuts that are asked for, how images lie, and whether kernels keep the
    code's digits. measures: is there a device to tell which order is the fastest?"""

    recorded: Region
    target: Target
    measures: bool
    turned: Layout = FASTER
    exact: bool = False
    _known: dict[object, Cut] = field(default_factory=dict[object, Cut])
    _expected: dict[Layout, float] | None = None

    def of(self, refused: Sequence[frozenset[int]] = ()) -> Cut:
        """Each once: it takes a second for a whole model."""
        key = frozenset(refused), self.turned, self.exact
        if key not in self._known:
            region, parts = cut_region(self.recorded, refused, self.turned)
            self._known[key] = region, tuple(map(exactly if self.exact else as_computed, parts))
        return self._known[key]

    def first(self, whole: Cut) -> Cut:
        """What is solved before the cut that has most in its search units: the cut with the calls left to PyTorch for
        which it has one kernel, where there are some. It is quickly done, and says how fast the other has to be."""
        left = self.left(whole)
        first = self.of(left) if left else whole
        return first if any(isinstance(part, SearchUnit) for part in first[1]) else whole

    def left(self, whole: Cut) -> list[frozenset[int]]:
        """What the calls make that `first` leaves to PyTorch."""
        return all_left(whole[1], lambda left: self.of(left)[1])

    def calls(self) -> list[Sequence[Call]]:
        """Of the parts of each way to divide the region: a convolution may lie in a unit of one and be PyTorch's in
        another."""
        whole = self.of()
        return [part.calls for _, parts in (self.first(whole), whole) for part in parts]

    def layouts(self) -> dict[Layout, float]:
        """Choices of how images lie in memory, that which is expected to be fastest first, with the microseconds that
        it is expected to take. Where nothing is measured, only what may be the first: the code's own order is not."""
        if self._expected is None:
            found = layouts(self.recorded)
            choices: list[Layout] = [one for one in found if one in (FASTER, WHOLE)]
            us: dict[Layout, float] = dict.fromkeys(found, 0.0)
            if WHOLE in choices:
                for self.turned in choices:
                    us[self.turned] = expected_us(*self.of(windowed(self.recorded, self.turned)), self.target)
                choices.sort(key=lambda one: (us[one], one != WHOLE))  # as fast, it turns less
            others: list[Layout] = [one for one in found if one not in choices] if self.measures else []
            self._expected = {one: us[one] for one in (*choices, *others)}
        return self._expected
