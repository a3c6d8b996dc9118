"""`python -m mugraph.research.ranged [NAME ...] [--json FILE] [--plot FILE]`, on a GPU: the kernel that is found for a
range of sizes beside one that is found and tuned for each size alone, and the code as it runs, in one interleaved run
at each size.

Programs are found and tuned side by side, in processes of their own; what is timed has the device alone. Nothing new
begins when the seconds of --limit are near their end, and what is left is said.

It takes longer than a session with a GPU may have. With --folder the kernels that were found are kept there, with
--resume the rows of --json as well that have all three times: the next call goes on where the last one ended, if its
device and this package are the same.
"""

from __future__ import annotations

import argparse
import os
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable, Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from datetime import UTC, datetime
from functools import partial
from itertools import zip_longest
from pathlib import Path

import msgspec

from mugraph.ir.ranges import Point
from mugraph.research.ranged.curves import curves
from mugraph.research.ranged.made import Case, Made
from mugraph.research.ranged.programs import PROGRAMS, Program, label
from mugraph.research.ranged.rows import Found, Row, table
from mugraph.sharing import environment
from mugraph.store.keys import code_digest, versions
from mugraph.tune.device import UnknownTarget, detect, resolve
from mugraph.tune.measure import METHOD, Measurer
from mugraph.tune.messages import Agreed, InputSpec, Subject
from mugraph.tune.statistics import Summary

RANGE = "range"
_FINDING = 0.6
"""Part of the seconds in which something may be found and tuned; the rest is for the comparison."""
_ESTIMATED_FOR = "h200"

Task = tuple[Program, str]
"""A program, and the size that it is for, or RANGE."""


def tasks(programs: Sequence[Program], sizes: int) -> list[Task]:
    """The ranges first, then a size of each program in turn, sizes far from one another first: what is cut short lacks
    as many of each. sizes: so many of each program"""
    wanted = {one.name: _spread(one.points)[:sizes] for one in programs}
    turns = zip_longest(*([(one, label(point)) for point in wanted[one.name]] for one in programs))
    return [*((one, RANGE) for one in programs), *(task for turn in turns for task in turn if task is not None)]


def _spread(points: Sequence[Point]) -> list[Point]:
    """By the digits of their numbers, backwards; the first, which is the least, comes last."""
    digits = len(points).bit_length()
    order = sorted(range(len(points)), key=lambda at: int(f"{at:0{digits}b}"[::-1], 2), reverse=True)
    return [points[at] for at in order]


def found_one(task: Task, folder: Path, target: str, given: argparse.Namespace) -> tuple[Made, float]:
    """And the seconds that it took. A process that fails is one that found nothing. folder: has the locks as well, by
    which those side by side take turns on the device"""
    program, size = task
    points = [point for point in program.points if size in (RANGE, label(point))]
    name = f"{program.name}_{size.replace('=', '').replace(', ', '_')}"
    path, out = folder / f"{name}.py", folder / f"{name}.json"
    if (known := kept(out)) is not None:
        return known, 0.0
    path.write_text(program.ranged if size == RANGE else program.at(points[0]), encoding="utf-8")
    command = [sys.executable, "-m", "mugraph.research.ranged.made", str(path), str(out), "--target", target]
    command += ["--points", msgspec.json.encode(points).decode(), "--trials", str(given.trials)]
    command += ["--seconds", str(given.seconds * (2 if size == RANGE else 1))]
    command += ["--by-estimate"] if given.by_estimate else []
    began, around = time.monotonic(), {**os.environ, **environment(given.jobs, folder)}
    patience = given.patience * (2 if size == RANGE else 1)
    try:
        ran = subprocess.run(
            command, capture_output=True, text=True, timeout=patience, stdin=subprocess.DEVNULL, env=around
        )
    except subprocess.TimeoutExpired:
        return Made("failed", f"not done in {patience:.0f} s"), time.monotonic() - began
    took = time.monotonic() - began
    if ran.returncode or not out.exists():
        return Made("failed", (ran.stderr.strip().splitlines() or [f"status {ran.returncode}"])[-1]), took
    return msgspec.json.decode(out.read_bytes(), type=Made), took


def kept(out: Path) -> Made | None:
    """What an earlier call has found, if it can be read and is of this package."""
    try:
        known = msgspec.json.decode(out.read_bytes(), type=Made)
    except (OSError, msgspec.MsgspecError):
        return None
    return known if known.code == code_digest() else None


def found_all(wanted: Sequence[Task], folder: Path, target: str, given: argparse.Namespace) -> Mapping[Task, Made]:
    """Those that could be begun in time. Prints what each took."""
    last = time.monotonic() + _FINDING * given.limit

    def one(task: Task) -> Made | None:
        if time.monotonic() > last:
            return None
        made, took = found_one(task, folder, target, given)
        why = f" ({made.reason})" if made.reason else ""
        print(f"{task[0].name} {task[1]}: {made.status}{why}, {took:.0f} s", file=sys.stderr, flush=True)
        return made

    with ThreadPoolExecutor(given.jobs) as pool:
        results = pool.map(one, wanted)
        return {task: made for task, made in zip(wanted, results, strict=True) if made is not None}


def rows_of(
    program: Program,
    made: Mapping[Task, Made],
    times: Callable[[Case | None, Made | None, Case | None, Made | None], Row],
    points: Sequence[Point] | None = None,
) -> list[Row]:
    """Of the sizes at which something was found. times: of a case of the range, and of one size. points: of these"""
    rows: list[Row] = []
    ranged = made.get((program, RANGE))
    for point in program.points if points is None else points:
        alone = made.get((program, label(point)))
        of_range = next((case for case in ranged.cases if case.point == dict(point)), None) if ranged else None
        if alone is None and of_range is None:
            continue
        row = times(of_range, ranged, next(iter(alone.cases), None) if alone is not None else None, alone)
        row.program, row.size = program.name, label(point)
        no_range = "the range was not begun" if ranged is None else ranged.reason if ranged.module is None else ""
        no_size = "not begun" if alone is None else alone.reason if alone.module is None else ""
        row.why = "; ".join(filter(None, [no_range, no_size and f"alone: {no_size}", row.why]))
        rows.append(row)
    return rows


Earlier = Mapping[tuple[str, str], Row]
"""Rows of an earlier call, by program and size."""


def rows_kept(path: Path | None, now: Found) -> Earlier:
    """The rows of a file that are complete, if they are of this device, this package and as many trials."""
    try:
        known = msgspec.json.decode(path.read_bytes(), type=Found) if path is not None else None
    except (OSError, msgspec.MsgspecError):
        return {}
    if known is None or any(getattr(known, one) != getattr(now, one) for one in ("source", "device", "code", "trials")):
        return {}
    return {(row.program, row.size): row for row in known.rows if row.is_complete}


def with_earlier(
    program: Program,
    made: Mapping[Task, Made],
    times: Callable[[Case | None, Made | None, Case | None, Made | None], Row],
    earlier: Earlier,
) -> list[Row]:
    """The rows of a program in the order of its sizes, those of an earlier call as they were."""
    left = [point for point in program.points if (program.name, label(point)) not in earlier]
    new = {row.size: row for row in rows_of(program, made, times, left)}
    sizes = [label(point) for point in program.points]
    known = {size: earlier[program.name, size] for size in sizes if (program.name, size) in earlier}
    return [({**new, **known})[size] for size in sizes if size in new or size in known]


def estimated(one: Case | None, _: Made | None, other: Case | None, __: Made | None) -> Row:
    known = one or other
    return Row(
        "",
        "",
        one.estimated_us if one is not None else None,
        other.estimated_us if other is not None else None,
        known.code_estimated_us if known is not None else None,
        one is not None and one.offered,
    )


def measured(measurer: Measurer, one: Case | None, ranged: Made | None, other: Case | None, alone: Made | None) -> Row:
    """Interleaved, on the same inputs; each compared with the code before its time counts."""
    known = one or other
    if known is None:
        return Row("", "", None, None, None)
    code = Subject("code", known.code, "plain")
    subjects = [code]
    for name, case, found in ((RANGE, one, ranged), ("alone", other, alone)):
        if case is not None and found is not None and found.module is not None and is_same(case, known):
            subjects.append(Subject(name, found.module, found.function))
    right = {each.name: _agrees(measurer, each, code, known) for each in subjects[1:]}
    results = measurer.compare(subjects, known.inputs)
    us = {name: found.median_us for name, found in results.items() if isinstance(found, Summary)}
    failed = [f"{name}: {found}" for name, found in results.items() if not isinstance(found, Summary)]
    return Row(
        "",
        "",
        us.get(RANGE),
        us.get("alone"),
        us.get("code"),
        one is not None and one.offered,
        "; ".join(failed),
        right,
    )


def is_same(one: Case, other: Case) -> bool:
    """Both take the same tensors. The stride of a dimension of size 1 addresses nothing."""
    pairs = [[(each.shape, each.dtype, _addressing(each)) for each in case.inputs] for case in (one, other)]
    return pairs[0] == pairs[1]


def _addressing(one: InputSpec) -> list[int]:
    return [stride for size, stride in zip(one.shape, one.strides, strict=True) if size != 1]


def _agrees(measurer: Measurer, one: Subject, code: Subject, case: Case) -> bool:
    agreed = measurer.agree(one, code, case.inputs)
    return isinstance(agreed, Agreed) and agreed.passed


def main(arguments: Sequence[str]) -> int:
    """Exit status."""
    given = arguments_of(arguments)
    device = detect()
    if not given.by_estimate and device.kind != "gpu":
        print(f"{device.name}: there is no GPU here to measure on; --by-estimate needs none", file=sys.stderr)
        return 1
    try:
        target = resolve(_ESTIMATED_FOR if given.by_estimate and given.target == "auto" else given.target, device).name
    except UnknownTarget as error:
        print(error, file=sys.stderr)
        return 2
    programs = [PROGRAMS[name] for name in given.names or PROGRAMS]
    wanted = tasks(programs, given.sizes)
    said = ("estimated", "", "") if given.by_estimate else ("measured", device.name, METHOD)
    found = Found(said[0], said[1], datetime.now(UTC).date().isoformat(), said[2], versions(), given.trials)
    found.code = code_digest()
    earlier: Earlier = rows_kept(given.json, found) if given.resume else {}
    if given.resume and not earlier:
        print("there are no rows to go on from: of another device or version, or none", file=sys.stderr)
    wanted = [(program, size) for program, size in wanted if (program.name, size) not in earlier]
    with tempfile.TemporaryDirectory() as temporary:
        folder = given.folder or Path(temporary)
        folder.mkdir(parents=True, exist_ok=True)
        made = found_all(wanted, folder, target, given)
    found.left = [f"{program.name} {size}" for program, size in wanted if (program, size) not in made]
    if given.by_estimate:
        found.rows = [row for program in programs for row in with_earlier(program, made, estimated, earlier)]
    else:
        with Measurer() as measurer:
            for program in programs:
                found.rows += with_earlier(program, made, partial(measured, measurer), earlier)
                write(found, given)
    write(found, given)
    print(table(found.rows))
    if found.left:
        print(f"not begun in {given.limit:.0f} s: {', '.join(found.left)}", file=sys.stderr)
    return 0


def write(found: Found, given: argparse.Namespace) -> None:
    if given.json is not None:
        given.json.write_bytes(msgspec.json.format(msgspec.json.encode(found), indent=1) + b"\n")
    if given.plot is not None:
        on = found.device or "by estimate"
        given.plot.write_text(curves(found.rows, f"One kernel for a range of sizes, {on}"), encoding="utf-8")


def arguments_of(arguments: Sequence[str]) -> argparse.Namespace:
    parser = argparse.ArgumentParser(prog="python -m mugraph.research.ranged")
    parser.add_argument("names", nargs="*", metavar="NAME", help=", ".join(PROGRAMS))
    parser.add_argument("--json", type=Path, metavar="FILE")
    parser.add_argument("--plot", type=Path, metavar="FILE")
    parser.add_argument("--target", default="auto")
    parser.add_argument("--sizes", type=int, default=12, help="of each program, at most")
    parser.add_argument("--trials", type=int, default=16, help="kernels that are measured for a search unit, at most")
    parser.add_argument("--seconds", type=float, default=4.0, help="of search for a size; twice as many for a range")
    parser.add_argument("--patience", type=float, default=120.0, help="seconds for a size; twice as many for a range")
    parser.add_argument("--jobs", type=int, default=6, help="programs that are found and tuned side by side")
    parser.add_argument("--limit", type=float, default=420.0, help="seconds of it all")
    parser.add_argument("--folder", type=Path, metavar="DIRECTORY", help="keeps the kernels that are found")
    parser.add_argument("--resume", action="store_true", help="go on from the rows of --json")
    parser.add_argument("--by-estimate", action="store_true", help="nothing is measured; needs no GPU")
    given = parser.parse_args(arguments)
    if unknown := set(given.names) - PROGRAMS.keys():
        parser.error(f"no program is called {', '.join(sorted(unknown))}")
    if given.resume and given.json is None:
        parser.error("--resume goes on from the rows of --json, which is not given")
    return given


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
