"""The way of one file: optimised, edited, called beside its original, and taken back."""

from __future__ import annotations

import json
import shutil
import traceback
from dataclasses import dataclass, field
from pathlib import Path

from mugraph.edit.apply import apply_files
from mugraph.edit.revert import revert_file
from mugraph.events import Done, FileResult
from mugraph.pipeline import Options, run_trace
from mugraph.trace.tracer import trace_file
from mugraph.tune.device import detect, resolve

from tests.support.clock import FILE_S, slow_clock
from tests.support.forks import run_interpreted

TARGET = "h100"
BUDGET_S = 0.1
CHILD = Path(__file__).with_name("child.py")
STEM = "program"


@dataclass
class Outcome:
    """regions: with kernels, all that were found. failed: regions that ended in an error. wrong: what differs.
    error: an exception of mugraph's. lenient: calls of other shapes on which only the original raises. idle: entries
    with kernels that took none of their declared calls"""

    regions: int = 0
    found: int = 0
    calls: int = 0
    lenient: int = 0
    wrong: list[str] = field(default_factory=list[str])
    failed: list[str] = field(default_factory=list[str])
    error: str = ""
    idle: list[str] = field(default_factory=list[str])

    @property
    def kind(self) -> str:
        """Of failure; "" for none."""
        kinds = {"error": self.error, "wrong": self.wrong, "failed": self.failed, "idle": self.idle}
        return next((kind for kind, found in kinds.items() if found), "")


def outcome(text: str, folder: Path) -> Outcome:
    """Of a file with this text; the folder is empty."""
    made = Outcome()
    try:
        _gone(text, folder, made)
    except Exception as error:
        made.error = "".join(traceback.format_exception(error))
    return made


def _gone(text: str, folder: Path, made: Outcome) -> None:
    for side in ("original", "edited"):
        shutil.rmtree(folder / side, ignore_errors=True)
        (folder / side).mkdir(parents=True)
        (folder / side / f"{STEM}.py").write_text(text)
    path = folder / "edited" / f"{STEM}.py"
    result = found(path)
    if result.errors:
        raise AssertionError("; ".join(result.errors))
    made.found = len(result.regions)
    failed = [(one.region.function, one.reason or "") for one in result.regions if one.status == "failed"]
    plans = [one.plan for one in result.regions if one.plan is not None]
    made.regions = len(plans)
    if not plans and not failed:
        return
    sources = {name: source for one in result.regions for name, source in one.sources.items()}
    if plans:
        apply_files(path, plans, sources, target=resolve(TARGET, detect()))
    said = json.loads(run_interpreted(CHILD, str(folder), STEM, timeout_s=300.0).splitlines()[-1])
    made.wrong, made.calls, made.lenient = said["wrong"], said["calls"], said["lenient"]
    # Drawn code may raise by itself, as where one branch binds what a later line reads: then it cannot be traced.
    raises = {(entry, kind) for entry, kinds in said["raises"].items() for kind in kinds}
    made.failed = [
        f"{name}: {reason}"
        for name, reason in failed
        if not any(name.split(".")[0] == entry and f" raises {kind}:" in reason for entry, kind in raises)
    ]
    having = {plan.region.function.split(".")[0] for plan in plans}
    made.idle = [name for name, ran in said["launches"].items() if name in having and not ran]
    if plans:
        revert_file(path)
    if path.read_text() != text:
        raise AssertionError("the file is not what it was before")


def found(path: Path) -> FileResult:
    device = detect()
    options = Options(target=TARGET, budget_s=BUDGET_S, file_budget_s=FILE_S, measure=False)
    with slow_clock():
        events = run_trace(trace_file(path), device, resolve(TARGET, device), options)
        return next(event.result for event in events if isinstance(event, Done))
