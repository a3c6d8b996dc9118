"""Files of `mugraph bench files`, in a process of their own: whatever becomes of one, the others go on.

    python -m mugraph.commands.bench_one OPTIONS

reads names from standard input, two a line as JSON: of a file, and of the file that its answer goes to, as JSON. What
the user's code prints goes where it goes. The processes that search, test and measure serve one file after the other.
"""

from __future__ import annotations

import contextlib
import json
import os
import sys
import time
from collections.abc import Generator, Mapping, Sequence
from dataclasses import replace
from math import prod
from pathlib import Path

import msgspec

from mugraph.commands.bench import Json, workload
from mugraph.commands.bench_whole import TOOK_TOO_LONG, WholeFiles, can_compare, is_kernelbench
from mugraph.commands.common import Where
from mugraph.commands.optimize import from_runs
from mugraph.events import Done, Event, FileResult, RegionResult, Traced, Working
from mugraph.ir.dtypes import itemsize
from mugraph.ir.region import Region
from mugraph.pipeline import Options, run, working
from mugraph.protocol.gain_words import CODE
from mugraph.protocol.settings import CompareWith, EngineSettings, TunerName
from mugraph.reports.document import finite, verdicts_of
from mugraph.sharing import memory
from mugraph.solve.tools import Tools
from mugraph.targets import Target
from mugraph.trace.syntax.callers import Callers
from mugraph.tune.against import CALLED_PEERS, PEERS
from mugraph.tune.device import detect, device_memory, resolve

_LEAST_S = 5.0
"""Seconds that another file of a model gets at least."""
_TIMES = 6
"""What a region's tensors take, counted in their own bytes: two processes hold them, and one compares them in float64.
"""


class Asked(msgspec.Struct, frozen=True):
    """against: peers that are timed, and gains taken over; none: all. limit_s: of the whole file. tuner, trials,
    file_budget_s: as the settings are called. whole: a call of the whole model is timed as well"""

    budget_s: float
    executor: str
    target: str
    compare_with: CompareWith
    against: list[str]
    limit_s: float
    tuner: TunerName = EngineSettings.tuner
    trials: int = EngineSettings.trials
    file_budget_s: float = EngineSettings.file_budget_s
    whole: bool = False


def options_of(asked: Asked) -> Options:
    return Options(
        budget_s=asked.budget_s,
        executor=asked.executor,
        target=asked.target,
        compare_with=asked.compare_with,
        tuner=asked.tuner,
        trials=asked.trials,
        file_budget_s=asked.file_budget_s,
        peers=tuple(name for name in (*PEERS, *CALLED_PEERS) if name == CODE or name in asked.against)
        if asked.against
        else None,
    )


def answer(
    path: Path, asked: Asked, tools: Tools, held: contextlib.ExitStack, whole_files: WholeFiles
) -> Generator[Json]:
    """The file's answer: twice where the whole file is compared, for the comparison may take long, or never end.

    Raises what is nobody's mistake but ours. held: keeps the run's share of the device's memory
    """
    began = time.monotonic()
    results: list[FileResult] = []
    notices: list[str] = []
    if tools.measurer is not None and is_kernelbench(path):
        whole_files.begin()
    for event in _events(path, options_of(asked), tools):
        if isinstance(event, Working):
            print(event.what, flush=True)
        if isinstance(event, Traced):
            notices += event.trace.notices
            held.enter_context(memory(_share(event.trace.regions)))
        if isinstance(event, Done):
            results.append(event.result)
    spent = time.monotonic() - began
    if can_compare(path, results):
        yield _said(path, asked, tools.target, results, notices, spent, TOOK_TOO_LONG)
        print("comparing the whole file", flush=True)
    peers = (asked.against or [*PEERS]) if asked.whole else ()
    whole = whole_files.compare(path, results, asked.limit_s - spent, peers)
    yield _said(path, asked, tools.target, results, notices, spent, whole)


def _events(path: Path, options: Options, tools: Tools) -> Generator[Event]:
    """Of the file's run, and of those of the files that its run finds regions in: a Done for each, its own first. They
    share the seconds."""
    began, elsewhere = time.monotonic(), dict[str, tuple[str, ...]]()
    for event in run(path, None, options, tools=tools, runs=from_runs(Where(path, None))):
        if isinstance(event, Traced):
            elsewhere |= event.trace.elsewhere
        yield event
    callers = Callers((path,), each=True)
    for file, places in elsewhere.items():
        left = max(_LEAST_S, options.file_budget_s - (time.monotonic() - began))
        share = replace(options, file_budget_s=left)
        yield from run(Path(file), None, share, tools=tools, callers=callers, places=places)


def _said(
    path: Path,
    asked: Asked,
    target: Target,
    results: Sequence[FileResult],
    notices: Sequence[str],
    spent: float,
    whole: Json | None,
) -> Json:
    regions = [(one, region) for one in results for region in one.regions]
    searched = sum(bool(region.units) for _, region in regions)
    if whole is not None and isinstance(moved := whole.get("bytes"), int):
        whole = {**whole, "floor_us": moved / target.bandwidth}
    return {
        "errors": [error for one in results for error in one.errors],
        "notices": list(notices),
        "seconds": spent,
        "kernelbench": whole,
        "rows": [
            {
                **workload(path.stem, region, target, spent / max(searched, 1) if region.units else 0.0),
                **_of_file(path if one is results[0] else Path(one.path), region, whole, asked.against),
            }
            for one, region in regions
        ],
    }


def _share(regions: Sequence[Region]) -> float:
    """Of the device's memory, that the largest region takes while it is tested and timed."""
    total = device_memory()
    if total is None:
        return 0.0
    return max((_TIMES * _bytes(region) for region in regions), default=0) / total


def _bytes(region: Region) -> int:
    """Of what it reads and what it leaves."""
    infos = (region.values.get(one.value) for one in (*region.live_ins, *region.live_outs))
    return sum(prod(info.shape) * itemsize(info.dtype) for info in infos if info is not None)


def _of_file(path: Path, result: RegionResult, whole: Mapping[str, object] | None, against: Sequence[str]) -> Json:
    """offered: written, were it applied; faster: over which peers, and by how much."""
    offered = result.status == "improved" and result.reason is None
    verdicts, timing = verdicts_of(result.plan), result.timing
    errors = [one.max_rel_error for one in verdicts if one.max_rel_error is not None]
    right: bool | None = None
    if offered:
        right = bool(verdicts) and all(one.passed for one in verdicts) and len(errors) == len(verdicts)
        right = right and (whole is None or whole.get("right") is not False)
    gains: dict[str, float] = {}
    for name, us in timing.peers_us.items():
        if not against or name in against:
            gains[name] = us / timing.optimized_us if offered and timing.optimized_us else 1.0
    return {
        "file": str(path),
        "line": result.region.range.start.line + 1,
        "reason": result.reason,
        "offered": offered,
        "right": right,
        "max_rel_error": finite(max(errors)) if errors else None,
        "gains": gains,
    }


def main() -> None:
    asked = msgspec.json.decode(sys.argv[1], type=Asked)
    device = detect()
    with (
        WholeFiles() as whole_files,
        working(device, resolve(asked.target, device), options_of(asked)) as tools,
    ):
        for line in sys.stdin:
            path, out = json.loads(line)
            with contextlib.ExitStack() as held:
                found = None
                for found in answer(Path(path), asked, tools, held, whole_files):
                    _write(found, first_of(out))
                tools.release()
            _write(found, out)


def first_of(out: str) -> str:
    """Where an answer lies until the whole file is compared."""
    return f"{out}.first"


def _write(found: Json | None, out: str) -> None:
    part = Path(f"{out}.part")
    part.write_text(json.dumps(found, allow_nan=False))
    os.replace(part, out)


if __name__ == "__main__":
    main()
