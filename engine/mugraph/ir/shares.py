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
    fits:   recorded calls that the region's kernel would take; None where they were not looked at
    of:     the calls that were looked at
    taken:  part of the function's time that these calls took
    others: why it would not take the others, the most frequent reason with its count
    comment: of a region for the sizes that the run had, the comment that says them: "# mugraph: t=1..40, x=f32[t, 64]"
    """

    total: float
    own: float
    device: float | None
    calls: int
    whole: bool = False
    most: float | None = None
    fits: int | None = None
    of: int = 0
    taken: float = 1.0
    others: str = ""
    comment: str = ""

    @property
    def part(self) -> float:
        """What the region has of the run, at most if it is not the whole function: of time on a device, else of wall
        time."""
        least = 1.0 if self.most is None or self.total <= 0 else min(1.0, self.most / self.total)
        return (self.device if self.device is not None else self.total) * least

    def overall(self, gain: float | None) -> float | None:
        """How much faster the run is if the region is `gain` times faster in the calls that its kernel takes; None for
        no gain."""
        part = self.part * self.taken
        return 1 / (1 - part + part / gain) if gain is not None and gain > 1 else None

    @property
    def fitting_words(self) -> str:
        """ "made for 12 of 36 recorded calls; in others mask is None, the kernel is for a tensor (20)"; "" where it is
        made for all. Of a function that is called often only some calls are looked at, which is said."""
        if self.fits is None or not 0 < self.fits < self.of:
            return ""
        seen = f"{self.of} recorded calls"
        if self.of < self.calls:
            seen = f"the {self.of} recorded calls that were looked at, of {self.calls}"
        return f"made for {self.fits} of {seen}; in others {self.others}"


def share_words(share: Share, gain: float | None, here: str = "") -> str:
    """ "31 % of the run; 1.60x here is 1.13x overall; made for 12 of 36 recorded calls; in others mask is None, ...".

    here: the gain in words ("1.60x here")
    """
    said, overall = [f"{percent(share.part)} of the run"], share.overall(gain)
    if overall is not None:
        said.append(f"{here} is {'' if share.whole else 'at most '}{overall:.2f}x overall")
    recorded = f"for the recorded sizes, as “{share.comment}” would say" if share.comment else ""
    return "; ".join([*said, *filter(None, (share.fitting_words, recorded))])


def percent(part: float) -> str:
    return f"{100 * part:.0f} %" if part >= 0.01 else "less than 1 %"


def recorded_calls(number: int, shares: Mapping[int, Share]) -> int:
    """Of a region in the recorded run, as far as a kernel of it may take them; 1 at least, and without a recording."""
    share = shares.get(number)
    return max(1, round(share.calls * share.taken)) if share is not None else 1


def largest_first(numbers: Iterable[int], shares: Mapping[int, Share]) -> list[int]:
    """Positions of regions, those whose functions take most of the run first; without a recording as they stand."""
    return sorted(numbers, key=lambda number: -shares[number].part if number in shares else 0.0)
