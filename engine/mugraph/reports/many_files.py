"""What is told of many files: a summary in numbers, and a plot of their gains."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from html import escape
from math import exp, log, log2

Json = dict[str, object]
_WIDTH, _HEIGHT, _LEFT, _RIGHT, _TOP, _BOTTOM = 640, 360, 60, 20, 40, 50
_TICKS = (0.25, 0.5, 0.7, 1.0, 1.4, 2.0, 3.0, 4.0, 8.0, 16.0, 32.0, 64.0)
_STYLE = (
    "text{font:13px sans-serif;fill:#222}.page{fill:#fff}.grid{stroke:#ddd}.even{stroke:#888}"
    ".code{fill:#2166ac}.best{fill:#1b7837}"
)


@dataclass(frozen=True)
class Row:
    """One region of a file. Gains are 1.0 where nothing is offered, since the code stays as it is.

    right: whether its kernels agree with float64; None where nothing is offered
    code:  the gain over the code as it runs
    best:  the gain over the fastest peer
    peers: by name, the gain over each peer that has a time
    """

    file: str
    name: str
    offered: bool
    right: bool | None
    code: float
    best: float
    peers: Mapping[str, float]


def summary(rows: Sequence[Row], files: int, answered: int, *, measured: bool) -> Json:
    """Counts of regions, and of files with at least one region that is faster. The gain of a whole file is not
    computed: it does not follow from the gains of its regions."""
    offered = [row for row in rows if row.offered]
    peers = list(dict.fromkeys(name for row in rows for name in row.peers))
    return {
        "files": files,
        "answered": answered,
        "regions": len(rows),
        "offered": len(offered),
        "right": sum(row.right is True for row in offered),
        "wrong": sum(row.right is False for row in offered),
        "faster_than": {name: _faster(rows, name) for name in peers},
        "files_faster_than": {
            name: len({row.file for row in rows if row.peers.get(name, 1.0) > 1.0}) for name in peers
        },
        "geometric_mean": {name: _mean([row.peers[name] for row in rows if name in row.peers]) for name in peers},
        "geometric_mean_of_offered": {
            name: _mean([row.peers[name] for row in offered if name in row.peers]) for name in peers
        },
        "source": "measured" if measured else "estimated",
    }


def _faster(rows: Sequence[Row], name: str) -> int:
    return sum(row.peers.get(name, 1.0) > 1.0 for row in rows)


def _mean(gains: Sequence[float]) -> float | None:
    return exp(sum(map(log, gains)) / len(gains)) if gains else None


def plot(rows: Sequence[Row], title: str) -> str:
    """A complete SVG document: regions in the order of their gain over the code as it runs, and over the best peer."""
    ordered = sorted(rows, key=lambda row: (row.code, row.best, row.name))
    numbers = [number for row in rows for number in (row.code, row.best)]
    low, high = min([0.7, *numbers]) / 1.1, max([2.0, *numbers]) * 1.1
    wide, tall = _WIDTH - _LEFT - _RIGHT, _HEIGHT - _TOP - _BOTTOM

    def across(place: int) -> float:
        return _LEFT + wide * (place + 0.5) / max(len(rows), 1)

    def up(value: float) -> float:
        return _TOP + tall - tall * log2(value / low) / log2(high / low)

    parts: list[str] = []
    for tick in (tick for tick in _TICKS if low <= tick <= high):
        kind = "even" if tick == 1.0 else "grid"
        parts += [
            f'<line class="{kind}" x1="{_LEFT}" y1="{up(tick):.1f}" x2="{_LEFT + wide}" y2="{up(tick):.1f}"/>',
            f'<text x="{_LEFT - 8}" y="{up(tick) + 4:.1f}" text-anchor="end">{tick:g}</text>',
        ]
    for place, row in enumerate(ordered):
        said = f"<title>{escape(row.name)}: {row.code:.2f} over the code, {row.best:.2f} over the best peer</title>"
        parts += [
            f'<circle class="code" cx="{across(place):.1f}" cy="{up(row.code):.1f}" r="3">{said}</circle>',
            f'<circle class="best" cx="{across(place):.1f}" cy="{up(row.best):.1f}" r="3">{said}</circle>',
        ]
    legend = "regions by gain; blue: over the code as it runs, green: over the best peer"
    parts += [
        f'<text x="{_WIDTH / 2:.1f}" y="22" text-anchor="middle">{escape(title)}</text>',
        f'<text x="{_WIDTH / 2:.1f}" y="{_HEIGHT - 16}" text-anchor="middle">{legend}</text>',
    ]
    return (
        f'<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 {_WIDTH} {_HEIGHT}" width="{_WIDTH}" '
        f'height="{_HEIGHT}" role="img" aria-label="{escape(title)}">\n<style>{_STYLE}</style>\n'
        f'<rect class="page" width="{_WIDTH}" height="{_HEIGHT}"/>\n' + "\n".join(parts) + "\n</svg>\n"
    )
