"""What is installed here, what does not fit, and what to do about it: for `mugraph doctor` and the editor's report."""

from __future__ import annotations

import platform
import sys
from dataclasses import dataclass
from importlib.metadata import PackageNotFoundError, requires, version
from typing import Literal

from mugraph.store import Store
from mugraph.store.place import cache_folder
from mugraph.tune.device import Device

State = Literal["ok", "note", "problem"]
PYTHONS = ((3, 11), (3, 14))


@dataclass(frozen=True)
class Finding:
    """advice: what to do about it; None where nothing is to be done."""

    what: str
    found: str
    state: State = "ok"
    advice: str | None = None


def findings(device: Device) -> list[Finding]:
    return [_python(), *_packages(), *_device(device), _store()]


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


def _device(device: Device) -> list[Finding]:
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
