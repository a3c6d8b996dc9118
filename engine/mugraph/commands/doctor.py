"""`mugraph doctor`: what is installed here, what does not fit, and what to do about it."""

from __future__ import annotations

import platform
import sys
from dataclasses import dataclass
from importlib.metadata import PackageNotFoundError, requires, version
from typing import Literal

from rich.console import Console
from rich.table import Table

import mugraph
from mugraph.commands.common import FAILED, OK, print_json
from mugraph.store import Store
from mugraph.store.place import cache_folder
from mugraph.tune.device import detect

State = Literal["ok", "note", "problem"]
PYTHONS = ((3, 11), (3, 14))


@dataclass(frozen=True)
class Finding:
    """advice: what to do about it; None where nothing is to be done."""

    what: str
    found: str
    state: State = "ok"
    advice: str | None = None


def doctor(*, as_json: bool) -> int:
    """Exit status: 1 when something keeps mugraph from working; without a GPU it works and estimates."""
    findings = [_python(), *_packages(), *_device(), _store()]
    if as_json:
        print_json({"mugraph": mugraph.__version__, "findings": [_document(f) for f in findings]})
    else:
        table = Table(title=f"mugraph {mugraph.__version__}", title_justify="left", show_header=False, box=None)
        style = {"ok": "green", "note": "yellow", "problem": "bold red"}
        for finding in findings:
            table.add_row(f"[{style[finding.state]}]{finding.state}[/]", finding.what, finding.found)
            if finding.advice:
                table.add_row("", "", f"-> {finding.advice}")
        Console().print(table)
    return FAILED if any(finding.state == "problem" for finding in findings) else OK


def _document(finding: Finding) -> dict[str, str | None]:
    return {"what": finding.what, "found": finding.found, "state": finding.state, "advice": finding.advice}


def _python() -> Finding:
    low, high = PYTHONS
    here = f"{platform.python_version()} ({sys.executable})"
    if low <= sys.version_info[:2] < high:
        return Finding("Python", here)
    return Finding("Python", here, "problem", f"mugraph needs Python {low[0]}.{low[1]} to {high[0]}.{high[1] - 1}")


def _packages() -> list[Finding]:
    """torch and triton against the ranges this distribution states."""
    from packaging.requirements import Requirement

    findings: list[Finding] = []
    stated = {r.name: r for r in map(Requirement, requires("mugraph") or []) if r.marker is None or r.marker.evaluate()}
    for name in ("torch", "triton"):
        wanted = stated.get(name)
        try:
            have = version(name)
        except PackageNotFoundError:
            advice = f"pip install '{wanted}'" if wanted else "there is none for this system; kernels cannot be made"
            findings.append(Finding(name, "not installed", "problem", advice))
            continue
        if wanted is not None and not wanted.specifier.contains(have, prereleases=True):
            findings.append(Finding(name, have, "problem", f"pip install '{wanted.name}{wanted.specifier}'"))
        else:
            findings.append(Finding(name, have))
    return [*findings, *_torch_wants_triton(findings)]


def _torch_wants_triton(found: list[Finding]) -> list[Finding]:
    """A CUDA build of torch requires one exact triton; the CPU build none."""
    from packaging.requirements import Requirement

    versions = {finding.what: finding.found for finding in found if finding.state == "ok"}
    if not {"torch", "triton"} <= versions.keys():
        return []
    for text in requires("torch") or []:
        wanted = Requirement(text)
        applies = wanted.marker is None or wanted.marker.evaluate({"extra": ""})
        if wanted.name == "triton" and applies and not wanted.specifier.contains(versions["triton"]):
            advice = f"pip install 'triton{wanted.specifier}'"
            return [Finding("torch with triton", f"torch {versions['torch']} wants another triton", "problem", advice)]
    return []


def _device() -> list[Finding]:
    device = detect()
    if device.kind == "gpu":
        driver = f", driver {device.driver}" if device.driver else ""
        target = f", kernels for {device.target.name}"
        return [Finding("GPU", f"{device.name}, compute capability {device.capability / 10:.1f}{driver}{target}")]
    if device.note:
        return [Finding("GPU", device.note, "note", "times are estimated until PyTorch can use the GPU")]
    return [Finding("GPU", "none", "note", "kernels are made for a named --target, and their times are estimates")]


def _store() -> Finding:
    """Opened and read, as a run would."""
    with Store.open() as store:
        store.get("doctor")
        if store.notices:
            return Finding("store", store.notices[0], "note", "set MUGRAPH_CACHE_DIR to a folder that can be written")
    return Finding("store", str(cache_folder()))
