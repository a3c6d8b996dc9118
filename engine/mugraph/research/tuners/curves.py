"""Best-so-far curves as an SVG: for each operator the means over the seeds, in bands of the standard deviation."""

from __future__ import annotations

from collections.abc import Sequence
from html import escape

from mugraph.research.tuners.runs import TUNERS, Compared, Comparison, by_tuner, over_seeds
from mugraph.research.tuners.table import heading

_WIDTH, _HEIGHT = 380, 250
"""Of one operator's panel; its axes lie inside these margins."""
_LEFT, _RIGHT, _TOP, _BOTTOM = 52, 12, 34, 38
_HEAD, _LEGEND = 46, 44
_ACROSS = 2
_COLOURS = ("#222222", "#e08214", "#2166ac", "#888888", "#1b7837", "#b2182b", "#762a83", "#67a9cf")
_DASHES = ("", "6 3", "", "2 3", "", "8 3 2 3", "", "6 3")
_STYLE = (
    "text{font:12px sans-serif;fill:#222}.page{fill:#fff}.grid{stroke:#e4e4e4}.axis{stroke:#888}"
    ".mean{fill:none;stroke-width:1.8}.band{opacity:.13;stroke:none}.title{font-weight:bold}"
)


def curves(found: Comparison) -> str:
    """A complete document."""
    every = [one for one in found.operators if by_tuner(one)]
    names = [name for name in TUNERS if any(name in by_tuner(one) for one in every)]
    rows = -(-len(every) // _ACROSS)
    width, height = _ACROSS * _WIDTH, _HEAD + rows * _HEIGHT + _LEGEND
    title = "Best so far by trial: mean and standard deviation over the seeds"
    parts = [
        f'<text class="title" x="{width / 2:.0f}" y="18" text-anchor="middle">{title}</text>',
        f'<text x="{width / 2:.0f}" y="36" text-anchor="middle">{escape(heading(found))}</text>',
    ]
    for number, one in enumerate(every):
        x, y = number % _ACROSS * _WIDTH, _HEAD + number // _ACROSS * _HEIGHT
        parts.append(f'<g transform="translate({x} {y})">{"".join(_panel(one, found.trials))}</g>')
    parts += _legend(names, height - _LEGEND + 14)
    return (
        f'<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 {width} {height}" width="{width}" height="{height}" '
        f'role="img" aria-label="{escape(title)}">\n<style>{_STYLE}</style>\n'
        f'<rect class="page" width="{width}" height="{height}"/>\n' + "\n".join(parts) + "\n</svg>\n"
    )


def _panel(found: Compared, trials: int) -> list[str]:
    drawn = {name: over_seeds(runs, found.flops, trials) for name, runs in by_tuner(found).items()}
    high = 1.05 * max([mean + spread for curve in drawn.values() for mean, spread in curve] or [1.0]) or 1.0
    # From where the last curve has its bottom at half the way: the first trials are the same for all, and low.
    low = 0.9 * min(curve[min(trials, max(1, trials // 32)) - 1][0] for curve in drawn.values())
    right, bottom = _WIDTH - _RIGHT, _HEIGHT - _BOTTOM

    def across(trial: float) -> float:
        return _LEFT + (right - _LEFT) * (trial - 1) / max(1, trials - 1)

    def up(value: float) -> float:
        return bottom - (bottom - _TOP) * (min(max(value, low), high) - low) / (high - low)

    parts = [f'<text x="{_LEFT}" y="{_TOP - 10}">{escape(found.name)}: {escape(found.says)}</text>']
    for share in (0.0, 0.25, 0.5, 0.75, 1.0):
        value = low + share * (high - low)
        parts += [
            f'<line class="grid" x1="{_LEFT}" y1="{up(value):.1f}" x2="{right}" y2="{up(value):.1f}"/>',
            f'<text x="{_LEFT - 6}" y="{up(value) + 4:.1f}" text-anchor="end">{value:.3g}</text>',
        ]
        trial = 1 + share * (trials - 1)
        parts.append(f'<text x="{across(trial):.1f}" y="{bottom + 16}" text-anchor="middle">{trial:.0f}</text>')
    parts.append(f'<line class="axis" x1="{_LEFT}" y1="{bottom}" x2="{right}" y2="{bottom}"/>')
    parts.append(f'<text x="{(_LEFT + right) / 2:.0f}" y="{bottom + 31}" text-anchor="middle">trials (TFLOPS)</text>')
    for name, curve in drawn.items():
        at = TUNERS.index(name)
        upper = [(across(trial), up(mean + spread)) for trial, (mean, spread) in enumerate(curve, 1)]
        lower = [(across(trial), up(mean - spread)) for trial, (mean, spread) in enumerate(curve, 1)]
        middle = [(across(trial), up(mean)) for trial, (mean, _) in enumerate(curve, 1)]
        parts += [
            f'<polygon class="band" fill="{_COLOURS[at]}" points="{_points([*upper, *reversed(lower)])}"/>',
            f'<polyline class="mean" stroke="{_COLOURS[at]}" stroke-dasharray="{_DASHES[at]}" '
            f'points="{_points(middle)}"><title>{name}: {curve[-1][0]:.2f} after {trials} trials</title></polyline>',
        ]
    return parts


def _points(places: Sequence[tuple[float, float]]) -> str:
    """Without those in the middle of three at one height."""
    kept = [
        place
        for at, place in enumerate(places)
        if at in (0, len(places) - 1) or not places[at - 1][1] == place[1] == places[at + 1][1]
    ]
    return " ".join(f"{x:.1f},{y:.1f}" for x, y in kept)


def _legend(names: Sequence[str], top: float) -> list[str]:
    parts: list[str] = []
    for number, name in enumerate(names):
        at = TUNERS.index(name)
        x, y = 24 + number % 4 * 180, top + number // 4 * 18
        parts += [
            f'<line x1="{x}" y1="{y - 4}" x2="{x + 26}" y2="{y - 4}" stroke="{_COLOURS[at]}" stroke-width="2" '
            f'stroke-dasharray="{_DASHES[at]}"/>',
            f'<text x="{x + 32}" y="{y}">{escape(name)}</text>',
        ]
    return parts
