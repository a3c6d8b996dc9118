"""One file of `mugraph bench files`, in a process of its own: whatever becomes of it, the others go on.

    python -m mugraph.commands.bench_one FILE ANSWER OPTIONS

writes the answer as JSON. What the user's code prints goes where it goes.
"""

from __future__ import annotations

import ast
import json
import os
import shutil
import subprocess
import sys
import tempfile
import time
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import cast

import msgspec

from mugraph.commands.bench import Json, workload
from mugraph.commands.common import Where
from mugraph.commands.optimize import from_runs
from mugraph.edit.apply import apply_files
from mugraph.edit.source.text import EditError
from mugraph.events import Done, FileResult, RegionResult, Traced
from mugraph.ir.kernel import Rejected
from mugraph.pipeline import Options, improved, run
from mugraph.protocol.settings import CompareWith
from mugraph.reports.document import finite, verdicts_of
from mugraph.tune.device import detect, resolve


class Asked(msgspec.Struct, frozen=True):
    """against: peers that gains are taken over; none: all that were timed. limit_s: of the whole file."""

    budget_s: float
    executor: str
    target: str
    compare_with: CompareWith
    against: list[str]
    limit_s: float


def answer(path: Path, asked: Asked) -> Json:
    """Raises what is nobody's mistake but ours."""
    began = time.monotonic()
    options = Options(
        budget_s=asked.budget_s, executor=asked.executor, target=asked.target, compare_with=asked.compare_with
    )
    target = resolve(asked.target, detect())
    result: FileResult | None = None
    notices: list[str] = []
    for event in run(path, None, options, **from_runs(Where(path, None))):
        if isinstance(event, Traced):
            notices += event.trace.notices
        if isinstance(event, Done):
            result = event.result
    assert result is not None
    spent = time.monotonic() - began
    whole = _whole(path, result, asked.limit_s - spent)
    searched = sum(bool(region.units) for region in result.regions)
    return {
        "errors": list(result.errors),
        "notices": notices,
        "seconds": spent,
        "kernelbench": whole,
        "rows": [
            {
                **workload(path.stem, region, target, spent / max(searched, 1) if region.units else 0.0),
                **_of_file(path, region, whole, asked.against),
            }
            for region in result.regions
        ],
    }


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


def _whole(path: Path, result: FileResult, left_s: float) -> Json | None:
    """As KernelBench compares the file with its edited copy; None for what is no file of its convention, or where its
    kernels cannot run."""
    plans, sources, speeds = improved(result.regions)
    runs_here = result.device.kind == "gpu" or os.environ.get("TRITON_INTERPRET") == "1"
    if not plans or not runs_here or not is_kernelbench(path):
        return None
    with tempfile.TemporaryDirectory(prefix="mugraph-bench-", ignore_cleanup_errors=True) as folder:
        copy = Path(folder, path.name)
        shutil.copyfile(path, copy)
        try:
            apply_files(copy, plans, sources, target=result.device.target, speeds=speeds)
        except (EditError, Rejected) as error:
            return {"right": False, "why": str(error)}
        command = [sys.executable, "-m", "mugraph.checking.whole", str(path.resolve()), str(copy)]
        try:
            done = subprocess.run(command, capture_output=True, text=True, timeout=max(left_s, 10.0))
        except subprocess.TimeoutExpired:
            return {"right": None, "why": "the comparison took too long"}
        lines = done.stdout.splitlines()
        if done.returncode or not lines:
            said = [line for line in done.stderr.splitlines() if line.strip()]
            return {"right": None, "why": f"the comparison ended: {said[-1] if said else f'status {done.returncode}'}"}
        found = cast("dict[str, object]", json.loads(lines[-1]))
        if found["right"] and not found["taken"]:
            return {**found, "right": None, "why": "no call was taken by a kernel"}
        return found


def is_kernelbench(path: Path) -> bool:
    try:
        names = {getattr(node, "name", "") for node in ast.parse(path.read_bytes()).body}
    except (OSError, SyntaxError, ValueError, RecursionError):
        return False
    return {"Model", "get_inputs"} <= names


def main() -> None:
    path, out, asked = sys.argv[1:4]
    found = answer(Path(path), msgspec.json.decode(asked, type=Asked))
    Path(out).write_text(json.dumps(found, allow_nan=False))


if __name__ == "__main__":
    main()
