"""Whether a region's time is worth offering: it gains, and on no clock is it slower than what it has to be faster than,
which the user chooses."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace

from mugraph.events import LEVEL, Called, Clock, Figures, SizeTiming, Timing
from mugraph.protocol.gain_words import CODE, peer_name
from mugraph.protocol.settings import CompareWith

PEERS_OF: dict[CompareWith, tuple[str, ...]] = {
    "both": ("eager", "torch.compile", "max-autotune"),
    "code": ("eager",),
    "best": ("eager", "torch.compile", "max-autotune"),
}
"""What is timed beside the generated code."""
NO_FASTER = "the kernel is not faster than PyTorch here, beyond what measuring can tell"
_NO_FASTER_BY_ESTIMATE = "the kernel found is not expected to be faster than PyTorch's own"


def judged(timing: Timing, compare_with: CompareWith) -> Timing:
    """The timing, with why it is not offered, if so. Of several sizes each is judged for itself."""
    measured = timing.source == "measured"
    rows: tuple[SizeTiming, ...] = tuple(
        replace(row, why_not=_why_not(row, compare_with, measured=measured)) for row in timing.sizes
    )
    why = _why_not(timing, compare_with, measured=measured)
    return replace(timing, why_not=why, sizes=rows, compare_with=compare_with)


def _why_not(figures: Figures, compare_with: CompareWith, *, measured: bool) -> str | None:
    least = 1.0 if measured else LEVEL
    clocks: list[Clock] = [figures, *([figures.as_called] if figures.as_called is not None else [])]
    if compare_with != "best":
        for clock in clocks:
            if clock.speedup is not None and clock.speedup < least:
                return _slower(clock, CODE, "the code as it runs", measured=measured)
    if compare_with != "code":
        for clock in clocks:
            peer = clock.best_peer
            if clock.best_speedup is not None and peer is not None and clock.best_speedup < least:
                said = "the code as it runs" if peer == CODE else peer_name(peer)
                return _slower(clock, peer, said, measured=measured)
    if any(gain > 1 for gain in _decisive(clocks, compare_with)):
        return None
    return NO_FASTER if measured else _NO_FASTER_BY_ESTIMATE


def _decisive(clocks: list[Clock], compare_with: CompareWith) -> Iterator[float]:
    for clock in clocks:
        gain = clock.best_speedup if compare_with == "best" else clock.speedup
        if gain is not None:
            yield gain


def _slower(clock: Clock, peer: str, said: str, *, measured: bool) -> str:
    how = "as it is called" if isinstance(clock, Called) else "on the device"
    before = clock.peers_us.get(peer)
    known = before is not None and clock.optimized_us is not None
    times = f", {clock.optimized_us:.1f} µs against {before:.1f}" if known else ""
    if not measured:
        return f"{_NO_FASTER_BY_ESTIMATE}: estimated to be slower than {said}{times}"
    return f"{how} the kernel is slower than {said}{times}"
