"""Device models: the figures that schedules are filtered and estimated by, a file each in `models`.

The command line, the settings and the editor's extension take their names from here (`protocol/targets.py`).
"""

from __future__ import annotations

from dataclasses import replace
from importlib import import_module
from pkgutil import iter_modules
from typing import cast

from mugraph.targets import models
from mugraph.targets.target import Target

__all__ = ["TARGETS", "Target", "architecture", "figures_of"]


def _read() -> dict[str, Target]:
    found: list[Target] = []
    for module in iter_modules(models.__path__):
        found += cast("tuple[Target, ...]", import_module(f"{models.__name__}.{module.name}").TARGETS)
    return {target.name: target for target in sorted(found, key=lambda target: target.name)}


TARGETS: dict[str, Target] = _read()
"""Every device model by name."""


_SHARED = {70: 98_304, 75: 65_536, 86: 101_376, 89: 101_376, 120: 101_376, 121: 101_376}
"""Bytes of shared memory one block may use, of architectures with less than others have that stand in (CUDA programming
guide)."""


def figures_of(target: Target) -> Target:
    """The device that a target's figures are of: without a GPU, the one that estimates are made for."""
    return TARGETS[target.figures_of] if target.figures_of else target


def architecture(capability: int) -> Target:
    """The model of `sm_<capability>`. Where there is none, the newest one of an architecture that is not newer, or else
    the oldest one, stands in with its figures, but for the shared memory."""
    known = sorted((t for t in TARGETS.values() if t.is_architecture), key=lambda target: target.capability)
    model = next((t for t in reversed(known) if t.capability <= capability), known[0])
    if model.capability == capability:
        return model
    shared = _SHARED.get(capability, model.shared)
    return replace(model, name=f"sm_{capability}", capability=capability, shared=shared)
