"""What is installed here, what does not fit, and what to do about it: for `mugraph doctor` and the editor's report."""

from __future__ import annotations

import platform
import sys
from collections.abc import Mapping
from dataclasses import dataclass
from importlib.metadata import PackageNotFoundError, requires, version
from typing import TYPE_CHECKING, Literal

from mugraph.dependencies import PACKAGES, install, installed, required

if TYPE_CHECKING:
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


def findings(device: Device | None) -> list[Finding]:
    """device: None where a package is missing without which none can be looked for. Never raises for what is missing:
    that is what is found."""
    return [_python(), *_own_metadata(), *_packages(), *_device(device), _store()]


def _python() -> Finding:
    low, high = PYTHONS
    here = f"{platform.python_version()} ({sys.executable})"
    if low <= sys.version_info[:2] < high:
        return Finding("Python", here)
    return Finding("Python", here, "problem", f"mugraph needs Python {low[0]}.{low[1]} to {high[0]}.{high[1] - 1}")


def _own_metadata() -> list[Finding]:
    if required() is not None:
        return []
    found = "its metadata is missing, so that nobody knows which versions it needs"
    return [Finding("mugraph", found, "note", "install it with pip: python -m pip install -e . in its repository")]


def _packages() -> list[Finding]:
    """All that mugraph needs, against the versions that it states; of those that are as they should be, only torch and
    triton are told."""
    stated = required() or {}
    findings: list[Finding] = []
    for module, name in PACKAGES.items():
        told = name in ("torch", "triton")
        try:
            have = version(name)
        except PackageNotFoundError:
            none = name == "triton" and sys.platform != "linux"
            advice = "there is none for this system; kernels cannot be made" if none else install(name)
            findings.append(Finding(name, "not installed", "problem", advice))
            continue
        if not installed(module):
            findings.append(Finding(name, f"{have}, but there is no module {module}", "problem", install(name)))
        elif not _fits(have, stated.get(name, "")):
            findings.append(Finding(name, have, "problem", install(name)))
        elif told:
            findings.append(Finding(name, have))
    return [*findings, *_torch_wants_triton(findings)]


def _fits(have: str, versions: str) -> bool:
    """True where nothing can compare them: that packaging is missing is found by itself."""
    if not versions or not installed("packaging"):
        return True
    from packaging.specifiers import SpecifierSet

    return SpecifierSet(versions).contains(have, prereleases=True)


def _torch_wants_triton(found: list[Finding]) -> list[Finding]:
    """A CUDA build of torch requires one exact triton; the CPU build none."""
    versions: Mapping[str, str] = {finding.what: finding.found for finding in found if finding.state == "ok"}
    if not {"torch", "triton"} <= versions.keys() or not installed("packaging"):
        return []
    from packaging.requirements import Requirement

    for text in requires("torch") or []:
        wanted = Requirement(text)
        applies = wanted.marker is None or wanted.marker.evaluate({"extra": ""})
        if wanted.name == "triton" and applies and not wanted.specifier.contains(versions["triton"]):
            advice = f"pip install 'triton{wanted.specifier}'"
            return [Finding("torch with triton", f"torch {versions['torch']} wants another triton", "problem", advice)]
    return []


def _device(device: Device | None) -> list[Finding]:
    if device is None:
        return [Finding("GPU", "not looked for, since packages are missing", "note", "install them first")]
    if device.kind == "gpu":
        driver = f", driver {device.driver}" if device.driver else ""
        target = f", kernels for {device.target.name}"
        return [Finding("GPU", f"{device.name}, compute capability {device.capability / 10:.1f}{driver}{target}")]
    if device.note:
        return [Finding("GPU", device.note, "note", "times are estimated until PyTorch can use the GPU")]
    return [Finding("GPU", "none", "note", "kernels are made for a named --target, and their times are estimates")]


def _store() -> Finding:
    """Opened and read, as a run would."""
    try:
        from mugraph.store import Store
        from mugraph.store.place import cache_folder

        with Store.open() as store:
            store.get("doctor")
    except ModuleNotFoundError as error:
        return Finding("store", f"cannot be opened without {error.name}", "note", "install it first")
    if store.notices:
        return Finding("store", store.notices[0], "note", "set MUGRAPH_CACHE_DIR to a folder that can be written")
    return Finding("store", str(cache_folder()))
