"""Times by size as an SVG: of each program a panel, both axes logarithmic, with a line for the kernel for the range,
for kernels for each size, and for the code."""

from __future__ import annotations

from collections.abc import Sequence
from html import escape
from math import log2

from mugraph.research.ranged.rows import Row

_WIDTH, _HEIGHT, _LEFT, _TOP, _GAP = 420, 250, 56, 34, 64
_STYLE = (
    "text{font:12px sans-serif;fill:#222}.page{fill:#fff}.grid{stroke:#ddd}polyline{fill:none;stroke-width:1.6}"
    ".ranged{stroke:#2166ac}.alone{stroke:#1b7837;stroke-dasharray:5 3}.code{stroke:#888}"
    "circle.ranged{fill:#2166ac}circle.alone{fill:#1b7837}circle.code{fill:#888}"
)
_LINES = (("code", "the code as it runs"), ("alone", "a kernel for each size"), ("ranged", "one kernel for the range"))


def curves(rows: Sequence[Row], title: str) -> str:
    """A complete document."""
    programs = [*dict.fromkeys(row.program for row in rows)]
    height = _TOP + len(programs) * (_HEIGHT + _GAP) + 24
    parts = [f'<text x="{_LEFT}" y="18">{escape(title)}</text>']
    for number, program in enumerate(programs):
        top = _TOP + number * (_HEIGHT + _GAP)
        parts += _panel([row for row in rows if row.program == program], program, top)
    for at, (kind, said) in enumerate(_LINES):
        x = _LEFT + at * 150
        parts.append(f'<polyline class="{kind}" points="{x},{height - 14} {x + 22},{height - 14}"/>')
        parts.append(f'<text x="{x + 26}" y="{height - 10}">{said}</text>')
    width = _LEFT + _WIDTH + 20
    return (
        f'<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 {width} {height}" width="{width}" height="{height}" '
        f'role="img" aria-label="{escape(title)}">\n<style>{_STYLE}</style>\n'
        f'<rect class="page" width="{width}" height="{height}"/>\n' + "\n".join(parts) + "\n</svg>\n"
    )


def _panel(rows: Sequence[Row], program: str, top: float) -> list[str]:
    times = [us for row in rows for us in (row.ranged_us, row.alone_us, row.code_us) if us]
    parts = [f'<text x="{_LEFT}" y="{top + 14}">{escape(program)}, microseconds</text>']
    if not times:
        return parts
    low, high = min(times) / 1.15, max(times) * 1.15

    def up(us: float) -> float:
        return top + 22 + (_HEIGHT - 22) * (1 - log2(us / low) / log2(high / low))

    def across(at: int) -> float:
        return _LEFT + 10 + (_WIDTH - 20) * at / max(1, len(rows) - 1)

    tick = 2.0 ** int(log2(low) + 1)
    while tick < high:
        parts.append(f'<line class="grid" x1="{_LEFT}" y1="{up(tick):.1f}" x2="{_LEFT + _WIDTH}" y2="{up(tick):.1f}"/>')
        parts.append(f'<text x="{_LEFT - 6}" y="{up(tick) + 4:.1f}" text-anchor="end">{tick:g}</text>')
        tick *= 2
    for at, row in enumerate(rows):
        x, y = across(at), top + _HEIGHT + 14
        size = escape(",".join(part.partition("=")[2] for part in row.size.split(", ")))
        parts.append(f'<text transform="translate({x:.1f} {y}) rotate(35)" style="font-size:10px">{size}</text>')
    for kind, _ in _LINES:
        places = [(at, us) for at, row in enumerate(rows) if (us := _us(row, kind))]
        line = " ".join(f"{across(at):.1f},{up(us):.1f}" for at, us in places)
        parts.append(f'<polyline class="{kind}" points="{line}"/>')
        for at, us in places:
            said = f"{escape(rows[at].size)}: {us:.1f} µs"
            parts.append(
                f'<circle class="{kind}" cx="{across(at):.1f}" cy="{up(us):.1f}" r="3"><title>{said}</title></circle>'
            )
    return parts


def _us(row: Row, kind: str) -> float | None:
    return {"ranged": row.ranged_us, "alone": row.alone_us, "code": row.code_us}[kind]
