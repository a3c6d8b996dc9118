"""`python -m mugraph.research.ranged.answers [NAME ...]`: what it takes to answer a region whose sizes are ranges, and
the same region at one size alone, each in processes of their own with empty caches.

That size is the largest at which a kernel is offered: where none is, none is tested, which takes no time. Each is
answered `--times` times in turn, and the least counts: what else runs on a machine only adds to it.
"""

from __future__ import annotations

import argparse
import sys
import tempfile
import time
from collections import Counter
from collections.abc import Mapping, Sequence
from pathlib import Path

import msgspec

from mugraph.protocol.settings import EngineSettings
from mugraph.research.answer import Answer
from mugraph.research.answers import Answers, cold
from mugraph.research.ranged.layers import LAYERS
from mugraph.research.ranged.programs import PROGRAMS, Program, label
from mugraph.research.ranged.rows import geometric
from mugraph.store.keys import versions

PATIENCE_S = 600.0
"""For one answer."""
MOST = 2.0
"""Times what a region at one size takes: the aim."""


class Taken(msgspec.Struct):
    """By all regions of a file. status: how many regions have each. spent_s: on the clock, by what it went to"""

    seconds: float
    processor_s: float
    status: dict[str, int]
    spent_s: dict[str, float]


class Compared(msgspec.Struct):
    """size: of `alone`"""

    program: str
    size: str
    alone: Taken
    ranged: Taken

    @property
    def times(self) -> float:
        """More of the processor."""
        return self.ranged.processor_s / self.alone.processor_s


def taken(answers: Sequence[Answer]) -> Taken:
    spent = Counter[str]()
    for one in answers:
        spent.update(one.spent_s)
    return Taken(
        sum(one.seconds for one in answers),
        sum(one.processor_s for one in answers),
        dict(Counter(one.status for one in answers)),
        dict(spent),
    )


def compared(program: Program, folder: Path, given: argparse.Namespace) -> Compared | None:
    """None where a process failed, which has said why."""

    def once(name: str, text: str) -> Taken | None:
        path = folder / f"{program.name}_{name}.py"
        path.write_text(text, encoding="utf-8")
        found = Answers(given.budget, versions())
        cold(path, found, given.target, time.monotonic() + PATIENCE_S, folder / "answers.json", given.file_budget)
        return taken(found.answers) if found.done and found.answers else None

    points = [program.points[at] for at in sorted({len(program.points) - 1, len(program.points) // 2, 0})[::-1]]
    alone, at = None, points[0]
    for point in points:
        found = once("alone", program.at(point))
        if found is not None and (alone is None or "improved" in found.status):
            alone, at = found, point
        if alone is not None and "improved" in alone.status:
            break
    ranged = once("ranged", program.ranged)
    for _ in range(given.times - 1):
        alone, ranged = less(alone, once("alone", program.at(at))), less(ranged, once("ranged", program.ranged))
    return Compared(program.name, label(at), alone, ranged) if alone is not None and ranged is not None else None


def less(one: Taken | None, other: Taken | None) -> Taken | None:
    both = [each for each in (one, other) if each is not None]
    return min(both, key=lambda each: each.processor_s, default=None)


def table(rows: Sequence[Compared]) -> str:
    lines = [
        "| region | alone | processor (clock) | range | times | alone | range |",
        "| --- | --- | --: | --: | --: | --- | --- |",
    ]
    for row in rows:
        alone, ranged = row.alone, row.ranged
        took = (f"{one.processor_s:.1f} s ({one.seconds:.1f})" for one in (alone, ranged))
        cells = row.program, row.size, *took, f"{row.times:.2f}", _words(alone.status), _words(ranged.status)
        lines.append(f"| {' | '.join(cells)} |")
    if rows:
        times = [row.times for row in rows]
        most = f"{max(times):.2f} at most; the aim is {MOST:g} at most, of each"
        lines.append(f"\ngeometric mean: {geometric(times):.2f} times, {most}")
    return "\n".join(lines)


def _words(status: Mapping[str, int]) -> str:
    return ", ".join(name if count == 1 else f"{count} {name}" for name, count in status.items())


def main(arguments: Sequence[str]) -> int:
    """Exit status: 1 where one was not answered."""
    programs = {**PROGRAMS, **LAYERS}
    parser = argparse.ArgumentParser(prog="python -m mugraph.research.ranged.answers")
    parser.add_argument("names", nargs="*", metavar="NAME", help=", ".join(programs))
    parser.add_argument("--json", type=Path, metavar="FILE")
    parser.add_argument("--target", default="h200", help="of the estimates, where there is no GPU")
    parser.add_argument("--times", type=int, default=2, help="that each is answered")
    parser.add_argument("--budget", type=float, default=EngineSettings.budget_s, metavar="SECONDS", help="of a search")
    parser.add_argument("--file-budget", type=float, default=PATIENCE_S, metavar="SECONDS", help="of a file")
    given = parser.parse_args(arguments)
    if unknown := set(given.names) - programs.keys():
        parser.error(f"no program is called {', '.join(sorted(unknown))}")
    rows: list[Compared] = []
    wanted = given.names or list(programs)
    with tempfile.TemporaryDirectory() as folder:
        for name in wanted:
            row = compared(programs[name], Path(folder), given)
            if row is None:
                continue
            rows.append(row)
            print(table([row]).splitlines()[2], file=sys.stderr, flush=True)
            if given.json is not None:
                given.json.write_bytes(msgspec.json.format(msgspec.json.encode(rows), indent=1) + b"\n")
    print(table(rows))
    return 0 if len(rows) == len(wanted) else 1


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
