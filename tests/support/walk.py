"""The walk of a region's search units through the rooms of the engine, from `RegionJob.result` to its result.

    python -m tests.support.walk samples/rmsnorm_linear.py walk.json      watches one run and counts
    python -m tests.support.walk --draw before.json after.json walk.svg   draws two of them

To watch another commit, run this file with that commit's engine as PYTHONPATH. One run is watched by a profiler's hook.

A step  is a call from a function of one room to a function of another, taken once, when it first happens. Calls from
        the rooms that lead (LEAD) are steps, and so are calls into them. What other rooms do among themselves is not
        followed. Data (DATA) is no place to walk to: every room may hold a program in its hand, or ask a kind.
The walk is the sequence of files it stands in: of each step the caller's, then the callee's.
A return is a file of the walk that was left before, to be read on or to be called once more.
A climb is a call from any room into a higher one, by the layers of .importlinter: a callback, or an iterator that is
        read by a room below the one that made it. Climbs are counted over all calls of the run.
"""

from __future__ import annotations

import configparser
import json
import sys
from dataclasses import asdict, dataclass
from itertools import pairwise
from pathlib import Path
from types import CodeType, FrameType

LEAD = {"pipeline", "solve", "sizes", "memory"}
_BEGAN_WITH = {"trace/region.py", "codegen/kernel.py", "codegen/plan.py", "codegen/names.py"}
"""Data, under the names that it had before."""
DATA = {"ir", "kinds", "events", "options", "log", "plans/plan.py", *_BEGAN_WITH}
SECONDS = 120.0
"""Of the search: more than it needs, so that its work ends it and not the clock."""

Call = tuple[CodeType, CodeType]


@dataclass
class Walk:
    """rooms: of the engine, the highest first. files: where the walk stands, in order. climbs: caller, callee"""

    rooms: list[str]
    files: list[str]
    climbs: list[tuple[str, str]]

    def __str__(self) -> str:
        return f"{len(set(self.files))} files, {len(self.climbs)} climbs, {self.returns} returns"

    @property
    def returns(self) -> int:
        return len(self.files) - len(set(self.files))


def room_of(file: str) -> str:
    return file.split("/")[0].removesuffix(".py")


def ranks(contract: Path) -> dict[str, int]:
    """The rooms, each with its height."""
    config = configparser.ConfigParser()
    config.read(contract)
    layers = config["importlinter:contract:order"]["layers"].split("\n")
    rows = [[room.strip(" ()").removeprefix("mugraph.") for room in layer.split("|")] for layer in layers if layer]
    return {room: height for height, row in enumerate(reversed(rows)) for room in row}


def calls_of_a_run(sample: Path, engine: Path) -> list[Call]:
    """Between functions of the engine, each once, from the first call of RegionJob.result on."""
    from mugraph.events import RegionDone, Traced
    from mugraph.pipeline import Options, run

    calls: dict[Call, None] = {}
    begun = False

    def is_step(code: CodeType) -> bool:
        return code.co_filename.startswith(f"{engine}/") and not code.co_name.startswith("<")  # "<genexpr>", "<lambda>"

    def hook(frame: FrameType, event: str, _: object) -> None:
        nonlocal begun
        code = frame.f_code
        if event != "call" or not code.co_filename.startswith(f"{engine}/"):
            return
        begun = begun or code.co_qualname == "RegionJob.result"
        if not begun or code.co_name in ("<genexpr>", "<listcomp>", "<dictcomp>", "<setcomp>"):
            return
        back = frame.f_back
        while back is not None and not is_step(back.f_code):
            back = back.f_back
        if back is not None:
            calls[back.f_code, code] = None

    for event in run(sample, None, Options(target="h100", measure=False, budget_s=SECONDS)):
        if isinstance(event, Traced):
            sys.setprofile(hook)
        if isinstance(event, RegionDone):
            sys.setprofile(None)
            break
    return list(calls)


def walk_of(sample: Path) -> Walk:
    import mugraph

    assert mugraph.__file__ is not None
    engine = Path(mugraph.__file__).parent
    height = ranks(engine.parents[1] / ".importlinter")

    def name(code: CodeType) -> str:
        return str(Path(code.co_filename).relative_to(engine))

    climbs: list[tuple[str, str]] = []
    steps: list[tuple[str, str]] = []
    for caller, callee in calls_of_a_run(sample, engine):
        above, below = name(caller), name(callee)
        rooms = room_of(above), room_of(below)
        if height[rooms[0]] < height[rooms[1]]:
            climbs.append((f"{above} {caller.co_qualname}", f"{below} {callee.co_qualname}"))
        if LEAD.intersection(rooms) and not LEAD.issuperset(rooms):
            steps.append((above, below))
    files = walked(steps)
    return Walk(sorted({room_of(file) for file in files}, key=lambda room: -height[room]), files, climbs)


def walked(steps: list[tuple[str, str]]) -> list[str]:
    """The files that the steps stand in, those to data and from it left out."""
    files: list[str] = []
    for step in steps:
        if not DATA.intersection((*step, *map(room_of, step))):
            files += step
    return files[:1] + [file for before, file in pairwise(files) if file != before]


# ---------------------------------------------------------------------------------------------------------------------

STEP, ROW, LEFT = 9, 15, 86


def drawing(walks: list[tuple[str, Walk]]) -> str:
    """One above the other: a line through the rooms, from left to right; a filled dot is a file met for the first time,
    a ring one that is returned to."""
    width = LEFT + STEP * (max(len(walk.files) for _, walk in walks) + 2)
    lines: list[str] = []
    top = 0
    for title, walk in walks:
        y = {room: top + 32 + ROW * number for number, room in enumerate(walk.rooms)}
        lines.append(f'<text x="4" y="{top + 14}" class="title">{title}: {walk}</text>')
        lines += [f'<text x="{LEFT - 10}" y="{at + 4}" class="room">{room}</text>' for room, at in y.items()]
        lines += [f'<path d="M{LEFT} {at}H{width - 6}" class="floor"/>' for at in y.values()]
        points = [(LEFT + STEP * (n + 1), y[room_of(file)]) for n, file in enumerate(walk.files)]
        lines.append(f'<polyline points="{" ".join(f"{x},{at}" for x, at in points)}" class="walk"/>')
        seen: set[str] = set()
        for (x, at), file in zip(points, walk.files, strict=True):
            kind = "again" if file in seen else "first"
            lines.append(f'<circle cx="{x}" cy="{at}" r="3" class="{kind}"><title>{file}</title></circle>')
            seen.add(file)
        top += 44 + ROW * len(walk.rooms)
    style = (
        "text{font:11px sans-serif;fill:#57606a}.title{font-weight:bold}.room{text-anchor:end}"
        ".floor{stroke:#d0d7de}.walk{fill:none;stroke:#0969da;stroke-width:1.2}"
        ".first{fill:#0969da}.again{fill:#fff;stroke:#cf222e;stroke-width:1.6}"
    )
    head = f'<svg xmlns="http://www.w3.org/2000/svg" width="{width}" height="{top}" viewBox="0 0 {width} {top}">'
    back = f'<rect width="{width}" height="{top}" fill="#fff"/>'
    return "\n".join([head, f"<style>{style}</style>", back, *lines, "</svg>", ""])


def read(path: str) -> Walk:
    return Walk(**json.loads(Path(path).read_text()))


if __name__ == "__main__":
    if sys.argv[1] == "--draw":
        before, after, out = sys.argv[2:]
        Path(out).write_text(drawing([("before", read(before)), ("after", read(after))]))
    else:
        found = walk_of(Path(sys.argv[1]))
        Path(sys.argv[2]).write_text(json.dumps(asdict(found)))
        print(found)
        print(*(" ".join(climb) for climb in found.climbs), sep="\n")
