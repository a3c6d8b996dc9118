"""Estimated against measured speedups as an SVG, both on logarithmic scales, with the band of 30 %."""

from __future__ import annotations

from collections.abc import Sequence
from html import escape
from math import log2

_SIZE, _LEFT, _RIGHT, _TOP, _BOTTOM = 420, 60, 20, 40, 50
_TICKS = (0.5, 0.7, 1.0, 1.4, 2.0, 3.0, 4.0, 6.0, 8.0, 12.0, 16.0)
_STYLE = (
    "text{font:13px sans-serif;fill:#222}.page{fill:#fff}.grid{stroke:#ddd}.band{fill:#1b7837;opacity:.12}"
    ".even{stroke:#888}.mark{fill:#2166ac;opacity:.8}"
)


def scatter(points: Sequence[tuple[str, float, float]], title: str) -> str:
    """A complete document. points: name, estimated, measured"""
    numbers = [number for _, *pair in points for number in pair]
    low, high = min([0.7, *numbers]) / 1.1, max([2.0, *numbers]) * 1.1
    side = _SIZE - _LEFT - _RIGHT

    def across(value: float) -> float:
        return _LEFT + side * log2(value / low) / log2(high / low)

    def up(value: float) -> float:
        return _TOP + side - side * log2(value / low) / log2(high / low)

    edges = [(low, low * 1.3), (high / 1.3, high), (high, high), (high, high / 1.3), (low * 1.3, low), (low, low)]
    corners = " ".join(f"{across(x):.1f},{up(y):.1f}" for x, y in edges)
    parts = [f'<polygon class="band" points="{corners}"/>']
    for tick in (tick for tick in _TICKS if low <= tick <= high):
        x, y = across(tick), up(tick)
        parts += [
            f'<line class="grid" x1="{x:.1f}" y1="{_TOP}" x2="{x:.1f}" y2="{_TOP + side}"/>',
            f'<line class="grid" x1="{_LEFT}" y1="{y:.1f}" x2="{_LEFT + side}" y2="{y:.1f}"/>',
            f'<text x="{x:.1f}" y="{_TOP + side + 18}" text-anchor="middle">{tick:g}</text>',
            f'<text x="{_LEFT - 8}" y="{y + 4:.1f}" text-anchor="end">{tick:g}</text>',
        ]
    parts.append(f'<line class="even" x1="{_LEFT}" y1="{_TOP + side}" x2="{_LEFT + side}" y2="{_TOP}"/>')
    for name, estimated, measured in points:
        said = f"{escape(name)}: estimated {estimated:.2f}, measured {measured:.2f}"
        parts.append(
            f'<circle class="mark" cx="{across(measured):.1f}" cy="{up(estimated):.1f}" r="4">'
            f"<title>{said}</title></circle>"
        )
    middle, height = _LEFT + side / 2, _TOP + side + _BOTTOM
    parts += [
        f'<text x="{middle:.1f}" y="22" text-anchor="middle">{escape(title)}</text>',
        f'<text x="{middle:.1f}" y="{height - 10}" text-anchor="middle">measured speedup</text>',
        f'<text transform="translate(16 {_TOP + side / 2:.1f}) rotate(-90)" text-anchor="middle">estimated</text>',
    ]
    return (
        f'<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 {_SIZE} {height}" width="{_SIZE}" height="{height}" '
        f'role="img" aria-label="{escape(title)}">\n<style>{_STYLE}</style>\n'
        f'<rect class="page" width="{_SIZE}" height="{height}"/>\n' + "\n".join(parts) + "\n</svg>\n"
    )
