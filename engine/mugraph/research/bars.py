"""`python -m mugraph.research.bars --svg OUT.svg RESULTS.json ...`: what layers and whole models take, as bars beside
PyTorch's and the time that their bytes take at the memory's bandwidth; replayed as CUDA graphs, and as called.

Each has a scale of its own; what takes more than `CUT` times as long as ours goes over the edge, its time beside it.
Results are as `mugraph bench files --json` prints them, or as they are kept in samples/results.
"""

from __future__ import annotations

import argparse
import sys
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from html import escape
from pathlib import Path
from typing import Any

import msgspec

OURS = "mugraph"
NAMES = {"eager": "code", "torch.compile": "torch.compile", "reduce-overhead": "reduce-overhead", OURS: OURS}
CUT = 2.5
"""Times of ours that a panel is wide."""
_LABEL, _PANEL, _NUMBER, _BAR, _GAP, _TOP = 250, 210, 48, 9, 8, 58
_PANELS = ("replayed, as one CUDA graph", "as called")
_STYLE = (
    "text{font:11px sans-serif;fill:#222}.page{fill:#fff}.b0{fill:#bdbdbd}.b1{fill:#6baed6}.b2{fill:#9e9ac8}"
    ".b3{fill:#1b7837}.bytes{stroke:#c05a00;stroke-width:1.5}.number{font-size:9px}"
)

Times = Mapping[str, float]


@dataclass(frozen=True)
class Timed:
    """Microseconds, by the names of `NAMES`. bytes_us: None where it is not known"""

    name: str
    bytes_us: float | None
    replayed: Times
    called: Times


class NoResults(Exception):
    """The message says of which file."""


def read(path: Path) -> list[Timed]:
    """Raises OSError, NoResults."""
    try:
        found = list(timed(msgspec.json.decode(path.read_bytes())))
    except (msgspec.DecodeError, KeyError, TypeError, AttributeError):
        found = []
    if not found:
        raise NoResults(f"{path} has no times of layers or models as mugraph bench files gives them.")
    return found


def timed(document: Any) -> Iterator[Timed]:
    """Of a document of results: of each file that has times of its whole these, else those of its regions, in the last
    run that has some."""
    of_runs = {(row["file"], row["name"], row.get("line")): row for run in document.get("runs", [])
               for row in run["regions"] if row.get("optimized_us")}  # fmt: skip
    rows: list[Any] = [*document.get("workloads", []), *of_runs.values()]
    files: list[Any] = document.get("files", [])
    for one in files:
        whole: Any = one.get("whole") or one.get("kernelbench")
        if whole and whole.get("times"):
            rows = [row for row in rows if row.get("file") != one["file"]]
            times: Mapping[str, Times] = whole["times"]
            bytes_us: float | None = whole.get("floor_us")
            yield Timed(Path(one["file"]).stem, bytes_us, times["device_us"], times["called_us"])
        else:
            rows += one.get("regions", [])
    for row in rows:
        if row.get("optimized_us") and row.get("as_called"):
            yield _region(row)


def _region(row: Any) -> Timed:
    called = row["as_called"]
    peers: Times = row["peers_us"]
    called_peers: Times = called["peers_us"]
    replayed = {**peers, OURS: row["optimized_us"]}
    return Timed(row["name"], row.get("floor_us"), replayed, {**called_peers, OURS: called["optimized_us"]})


def bars(found: Sequence[Timed], title: str) -> str:
    """A complete SVG document."""
    each = len(NAMES) * _BAR + _GAP
    width, height = _LABEL + 2 * (_PANEL + _NUMBER), _TOP + each * len(found) + 8
    parts = [_text(8, 16, title, "start")]
    place = 8.0
    for number, name in enumerate(NAMES.values()):
        parts += [_rect(place, 24, 9, number, ""), _text(place + 13, 33, name, "start")]
        place += 34 + 6.2 * len(name)
    parts += [_line(place, 24, 33), _text(place + 6, 33, "what its bytes take", "start")]
    parts += [_text(_LABEL + at * (_PANEL + _NUMBER), _TOP - 8, words, "start") for at, words in enumerate(_PANELS)]
    for row, one in enumerate(found):
        top = _TOP + row * each
        parts.append(_text(8, top + 2 * _BAR + 4, one.name.replace("_", " ").replace(":", ", "), "start"))
        for at, times in enumerate((one.replayed, one.called)):
            parts += _panel(one, times, _LABEL + at * (_PANEL + _NUMBER), top)
    return (
        f'<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 {width} {height}" width="{width}" height="{height}" '
        f'role="img" aria-label="{escape(title)}">\n<style>{_STYLE}</style>\n'
        f'<rect class="page" width="{width}" height="{height}"/>\n' + "\n".join(parts) + "\n</svg>\n"
    )


def _panel(one: Timed, times: Times, left: float, top: float) -> Iterator[str]:
    if OURS not in times:
        return
    longest = max((us for name, us in times.items() if name in NAMES), default=0.0)
    scale = _PANEL / max(min(longest, CUT * times[OURS]), one.bytes_us or 0.0)
    for number, name in enumerate(NAMES):
        if name not in times:
            continue
        us = times[name]
        wide, y = min(_PANEL, us * scale), top + number * _BAR
        said = f"{one.name}, {NAMES[name]}: {_us(us)} µs"
        yield _rect(left, y, wide, number, said)
        yield _text(left + wide + 3, y + _BAR - 1.5, ("→ " if us * scale > _PANEL + 0.5 else "") + _us(us), "start", 1)
    if one.bytes_us is not None:
        yield _line(left + one.bytes_us * scale, top - 2, top + len(NAMES) * _BAR + 1)


def _us(us: float) -> str:
    return f"{us:.1f}" if us < 100 else f"{us:,.0f}"


def _rect(x: float, y: float, wide: float, number: int, said: str) -> str:
    title = f"<title>{escape(said)}</title>" if said else ""
    return f'<rect class="b{number}" x="{x:.1f}" y="{y:.1f}" width="{wide:.1f}" height="{_BAR - 1}">{title}</rect>'


def _line(x: float, y1: float, y2: float) -> str:
    return f'<line class="bytes" x1="{x:.1f}" y1="{y1:.1f}" x2="{x:.1f}" y2="{y2:.1f}"/>'


def _text(x: float, y: float, text: str, anchor: str, small: int = 0) -> str:
    style = ' class="number"' if small else ""
    return f'<text{style} x="{x:.1f}" y="{y:.1f}" text-anchor="{anchor}">{escape(text)}</text>'


def main() -> int:
    parser = argparse.ArgumentParser(prog="python -m mugraph.research.bars", description=__doc__)
    parser.add_argument("results", nargs="+", type=Path, metavar="RESULTS.json")
    parser.add_argument("--svg", required=True, type=Path)
    parser.add_argument("--of", nargs="*", default=[""], metavar="WORD", help="in the names of what is drawn")
    parser.add_argument("--title", default="Microseconds of a call")
    given = parser.parse_args()
    try:
        every = [one for path in given.results for one in read(path)]
        found = [one for one in every if any(word in one.name for word in given.of)]
        given.svg.write_text(bars(found, given.title), encoding="utf-8")
    except (OSError, NoResults) as error:
        print(error, file=sys.stderr)
        return 2
    return 0


if __name__ == "__main__":
    sys.exit(main())
