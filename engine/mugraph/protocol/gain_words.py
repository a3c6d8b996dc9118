"""How much is gained, in words: what a terminal and an editor say of the same figures."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Protocol

from mugraph.protocol.settings import CompareWith

DIFFER = 1.1
"""From this ratio on of the gains on the two clocks, both are said."""
_NAMES = {"max-autotune": "torch.compile max-autotune", "reduce-overhead": "torch.compile reduce-overhead"}
CODE = "eager"
"""The peer that is the code as it runs."""


class OnClock(Protocol):
    """As `mugraph.events.Clock` and `values.Called` have it."""

    @property
    def speedup(self) -> float | None: ...
    @property
    def best_peer(self) -> str | None: ...
    @property
    def best_speedup(self) -> float | None: ...


class OnBoth(OnClock, Protocol):
    @property
    def as_called(self) -> OnClock | None: ...


def peer_name(peer: str) -> str:
    return _NAMES.get(peer, peer)


def gain_words(rows: Sequence[OnBoth], *, measured: bool, compare_with: CompareWith = "both", sign: str = "x") -> str:
    """ "1.20x as it runs, 1.02x torch.compile max-autotune"; where the clocks differ "1.65x on the device, 1.10x as
    called, ..."; of an estimate "about 3x by estimate"; "" where no gain is known.

    rows: of the sizes at which something is gained; of a region without a range its one
    """
    code = [row.speedup for row in rows if row.speedup is not None]
    if not measured:
        return f"about {_span(code, sign, digits=False)} by estimate" if code else ""
    best = [row.best_speedup for row in rows if row.best_speedup is not None]
    called_code = [one.speedup for one in _called(rows) if one.speedup is not None]
    called = [one for one in _called(rows) if one.best_peer != CODE]  # over the code it is said already
    called_best = [one.best_speedup for one in called if one.best_speedup is not None]
    peers = list(dict.fromkeys(peer_name(row.best_peer) for row in rows if row.best_peer not in (None, CODE)))
    parts: list[str] = []
    if code and (compare_with != "best" or not peers):
        parts.append(_of_code(code, called_code, sign))
    if best and peers and compare_with != "code":
        parts.append(_of_best(best, called_best, " or ".join(peers), sign))
    return ", ".join(parts)


def in_a_run(row: OnBoth) -> float | None:
    """The gain that counts in a run of the program: as called, where that was measured."""
    called = row.as_called.speedup if row.as_called is not None else None
    return row.speedup if called is None else called


def _called(rows: Sequence[OnBoth]) -> list[OnClock]:
    return [row.as_called for row in rows if row.as_called is not None]


def _of_code(device: Sequence[float], called: Sequence[float], sign: str) -> str:
    if not called:
        return f"{_span(device, sign)} on the device"
    if _differ(device, called):
        return f"{_span(device, sign)} on the device, {_span(called, sign)} as called"
    return f"{_span(device, sign)} as it runs"


def _of_best(device: Sequence[float], called: Sequence[float], peers: str, sign: str) -> str:
    also = f" ({_span(called, sign)} as called)" if called and _differ(device, called) else ""
    return f"{_span(device, sign)} {peers}{also}"


def _differ(device: Sequence[float], called: Sequence[float]) -> bool:
    """At either end of their spans."""
    ends = ((min(device), min(called)), (max(device), max(called)))
    return any(max(pair) > DIFFER * min(pair) for pair in ends)


def _span(gains: Sequence[float], sign: str, *, digits: bool = True) -> str:
    low, high = (times(gain, sign, digits=digits) for gain in (min(gains), max(gains)))
    return low if low == high else f"{low} to {high}"


def times(gain: float, sign: str, *, digits: bool = True) -> str:
    """ "1.20x"; of an estimate, digits=False: "1.2x", and "1.05x", which is not none."""
    if gain >= 10:
        return f"{gain:.0f}{sign}"
    return f"{gain:.2f}{sign}" if digits or 1 <= gain < 1.095 else f"{gain:.2g}{sign}"


def here_words(gain: float | None, measured: bool, sign: str = "x") -> str:
    """Of a part of a run: "1.20x here", of an estimate "about 1.2x here by estimate"."""
    if gain is None:
        return ""
    return f"{times(gain, sign)} here" if measured else f"about {times(gain, sign, digits=False)} here by estimate"
