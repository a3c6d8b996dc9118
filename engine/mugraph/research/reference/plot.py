"""The ablation as an SVG: seconds, on a logarithmic scale, by operators allowed in a block graph."""

from __future__ import annotations

from collections.abc import Sequence
from math import ceil, floor, log10

from mugraph.research.reference.measured import Cell, Variant

_WIDTH, _HEIGHT = 640, 400
_LEFT, _RIGHT, _TOP, _BOTTOM = 70, 20, 88, 50
_COLOURS = {
    Variant.FULL: "#1b7837", Variant.ONE: "#2166ac", Variant.UNPRUNED: "#c05a00", Variant.LITERAL: "#5e3c99",
}  # fmt: skip
_STYLE = (
    "text{font:13px sans-serif;fill:#222}.page{fill:#fff}.axis{stroke:#222}.grid{stroke:#ddd}"
    ".cap{stroke:#888;stroke-dasharray:5 4}.line{fill:none;stroke-width:2}"
)


def plot(cells: Sequence[Cell], cap: float) -> str:
    """A complete document. A run that did not finish is a hollow mark where it was stopped."""
    bounds = sorted({cell.max_ops for cell in cells})
    low = floor(log10(min(cell.seconds for cell in cells)))
    high = max(low + 1, ceil(log10(cap)))

    def x(max_ops: int) -> float:
        return _LEFT + (_WIDTH - _LEFT - _RIGHT) * (max_ops - bounds[0] + 0.5) / (bounds[-1] - bounds[0] + 1)

    def y(seconds: float) -> float:
        return _HEIGHT - _BOTTOM - (_HEIGHT - _TOP - _BOTTOM) * (log10(seconds) - low) / (high - low)

    parts: list[str] = []
    right, bottom = _WIDTH - _RIGHT, _HEIGHT - _BOTTOM
    for power in range(low, high + 1):
        at = y(10.0**power)
        parts.append(_line(_LEFT, at, right, at, "grid"))
        parts.append(_text(_LEFT - 8, at + 4, f"{10.0**power:g} s", "end"))
    parts += [_text(x(bound), bottom + 20, str(bound), "middle") for bound in bounds]
    parts.append(_text((_LEFT + right) / 2, bottom + 40, "operators allowed in a block graph", "middle"))
    parts.append(_line(_LEFT, bottom, right, bottom, "axis"))
    parts.append(_line(_LEFT, y(cap), right, y(cap), "cap"))
    parts.append(_text(right, y(cap) - 6, f"cap {cap:g} s", "end"))
    parts.append(_text(right, 18, "hollow: stopped, by the cap or by memory", "end"))
    for row, variant in enumerate(Variant):
        colour = _COLOURS[variant]
        parts.append(f'<circle cx="{_LEFT}" cy="{14 + 18 * row}" r="4" fill="{colour}"/>')
        parts.append(_text(_LEFT + 12, 18 + 18 * row, variant.value, "start"))
        own = [cell for cell in cells if cell.variant is variant]
        points = " ".join(f"{x(cell.max_ops):.1f},{y(cell.seconds):.1f}" for cell in own)
        parts.append(f'<polyline class="line" stroke="{colour}" points="{points}"/>')
        for cell in own:
            fill = colour if cell.ended_by == "space" else "#fff"
            title = f"{variant.value}, {cell.max_ops} operators: {cell.seconds:.2f} s, ended by {cell.ended_by}"
            parts.append(
                f'<circle cx="{x(cell.max_ops):.1f}" cy="{y(cell.seconds):.1f}" r="4" stroke="{colour}" '
                f'fill="{fill}"><title>{title}</title></circle>'
            )
    return (
        f'<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 {_WIDTH} {_HEIGHT}" width="{_WIDTH}" '
        f'height="{_HEIGHT}" role="img" aria-label="Time of search by operators allowed">\n<style>{_STYLE}</style>\n'
        f'<rect class="page" width="{_WIDTH}" height="{_HEIGHT}"/>\n' + "\n".join(parts) + "\n</svg>\n"
    )


def _line(x1: float, y1: float, x2: float, y2: float, style: str) -> str:
    return f'<line class="{style}" x1="{x1:.1f}" y1="{y1:.1f}" x2="{x2:.1f}" y2="{y2:.1f}"/>'


def _text(x: float, y: float, text: str, anchor: str) -> str:
    return f'<text x="{x:.1f}" y="{y:.1f}" text-anchor="{anchor}">{text}</text>'
