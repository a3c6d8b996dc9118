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
    most:   of the wall time, what that region can have at most: that of its function without what it calls, and of the
            functions that ran in the region. None where it is all of it
    """

    total: float
    own: float
    device: float | None
    calls: int
    whole: bool = False
    most: float | None = None

    @property
    def part(self) -> float:
        """What the region has of the run, at most if it is not the whole function: of time on a device, else of wall
        time."""
        least = 1.0 if self.most is None or self.total <= 0 else min(1.0, self.most / self.total)
        return (self.device if self.device is not None else self.total) * least

    def overall(self, gain: float | None) -> float | None:
        """How much faster the run is if the region is `gain` times faster; None for no gain."""
        return 1 / (1 - self.part + self.part / gain) if gain is not None and gain > 1 else None


def share_words(share: Share, gain: float | None, here: str = "") -> str:
    """ "31 % of the run; 1.60x here is 1.13x overall". here: the gain in words ("1.60x here")"""
    said, overall = f"{percent(share.part)} of the run", share.overall(gain)
    if overall is None:
        return said
    return f"{said}; {here} is {'' if share.whole else 'at most '}{overall:.2f}x overall"


def percent(part: float) -> str:
    return f"{100 * part:.0f} %" if part >= 0.01 else "less than 1 %"


def largest_first(numbers: Iterable[int], shares: Mapping[int, Share]) -> list[int]:
    """Positions of regions, those whose functions take most of the run first; without a recording as they stand."""
    return sorted(numbers, key=lambda number: -shares[number].part if number in shares else 0.0)
