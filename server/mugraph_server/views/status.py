"""`mugraph/status`: one line for the editor's status bar, and what stands behind it."""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

from mugraph_server.engine.state import EngineStatus
from mugraph_server.regions import FileState


@dataclass(frozen=True)
class EngineView:
    """target: what kernels are made for, which need not be the device."""

    root: str
    status: EngineStatus
    target: str = ""


def status(files: Sequence[FileState], engines: Sequence[EngineView], enabled: bool, trusted: bool) -> dict[str, Any]:
    """state: the most pressing of "disabled", "untrusted", "errored", "restarting", "starting", "searching", "idle"."""
    counts = Counter(file.state(mark) for file in files for mark in file.marks)
    searching = sum(file.searching for file in files)
    state, message = _state(engines, searching, enabled, trusted)
    return {
        "state": state,
        "message": message or _counted(counts, searching, _estimated(files)),
        "searching": searching,
        "regions": dict(sorted(counts.items())),
        "engines": [
            {
                "root": engine.root,
                "state": engine.status.state,
                "message": engine.status.message,
                "command": engine.status.command,
                "python": engine.status.python,
                "device": engine.status.device,
                "target": engine.target,
                "versions": dict(engine.status.versions),
                "pid": engine.status.pid,
                "restarts": engine.status.restarts,
            }
            for engine in engines
        ],
    }


def _state(engines: Sequence[EngineView], searching: int, enabled: bool, trusted: bool) -> tuple[str, str]:
    if not enabled:
        return "disabled", "mugraph is switched off by the setting mugraph.enable"
    if not trusted:
        return "untrusted", "mugraph runs the workspace's code, so it waits until the workspace is trusted"
    for state in ("errored", "restarting", "starting"):
        for engine in engines:
            if engine.status.state == state:
                return state, engine.status.message or f"the engine is {state}: {engine.status.command}"
    return ("searching" if searching else "idle"), ""


def _estimated(files: Sequence[FileState]) -> int:
    """Regions that are faster by estimate."""
    improved = [mark.region for file in files for mark in file.marks if file.state(mark) == "improved"]
    return sum(region.timing is not None and region.timing.source == "estimated" for region in improved)


def _counted(counts: Counter[str], searching: int, estimated: int) -> str:
    parts = [f"searching {searching} file{'s' if searching > 1 else ''}"] if searching else []
    words = {
        "improved": "faster",
        "needs-shapes": "without shapes",
        "applied": "running as kernels",
        "failed": "failed",
    }
    if estimated:
        every = estimated == counts["improved"]
        words["improved"] = "faster by estimate" if every else f"faster, {estimated} of them by estimate"
    parts += [f"{counts[state]} {said}" for state, said in words.items() if counts[state]]
    return ", ".join(parts) or "nothing to improve found yet"
