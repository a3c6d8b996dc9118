"""How much of a run a function takes, and what a gain in it is worth overall (Amdahl's law)."""

from __future__ import annotations

from collections.abc import Iterable, Mapping

import msgspec


class Share(msgspec.Struct, frozen=True):
    """As parts of the run that was recorded: of its wall time from the first watched call to the end of the last.

    total:  of the function, with all that it calls
    own:    less what other functions of the user's take that it calls
    device: of its time on a GPU's stream; None where the run used none
    calls:  how often it was called
    whole:  the region that this is said of is all of the function; else a gain in it is only a part's
    """

    total: float
    own: float
    device: float | None
    calls: int
    whole: bool = False

    @property
    def part(self) -> float:
        """What is gained by making the function faster: on a device its time there, else wall time."""
        return self.device if self.device is not None else self.total

    def overall(self, gain: float | None) -> float | None:
        """How much faster the run is if the function is `gain` times faster; None for no gain."""
        return 1 / (1 - self.part + self.part / gain) if gain is not None and gain > 1 else None


def share_words(share: Share, gain: float | None) -> str:
    """ "31 % of the run; 1.60x here is 1.13x overall"."""
    said, overall = f"{percent(share.part)} of the run", share.overall(gain)
    if overall is None:
        return said
    return f"{said}; {gain:.2f}x here is {'' if share.whole else 'at most '}{overall:.2f}x overall"


def percent(part: float) -> str:
    return f"{100 * part:.0f} %" if part >= 0.01 else "less than 1 %"


def largest_first(numbers: Iterable[int], shares: Mapping[int, Share]) -> list[int]:
    """Positions of regions, those whose functions take most of the run first; without a recording as they stand."""
    return sorted(numbers, key=lambda number: -shares[number].part if number in shares else 0.0)
