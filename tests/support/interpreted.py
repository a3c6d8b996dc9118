"""Kernel modules that were made in memory, run in Triton's interpreter as if the processor were their device, and how
often they took a call. TRITON_INTERPRET has to be set before Triton is imported."""

from __future__ import annotations

import sys
from collections.abc import Callable
from typing import Any

from mugraph.store.place import cache_folder
from mugraph.verification.interpreter import patch_interpreter

patch_interpreter()
_counted: dict[str, Any] = {}
_taken = [0]


def taken(call: Callable[[], object]) -> int:
    """How many calls of regions the kernels take while this runs."""
    folder = str(cache_folder() / "modules")
    for name, module in list(sys.modules.items()):
        if name not in _counted and str(getattr(module, "__file__", "")).startswith(folder):
            _counted[name] = module
            vars(module)["_tested_gpu"] = _on_cpu
            fits = [one for one in vars(module) if one.endswith("_fits") and not one.startswith("_")]
            vars(module).update({one: _counting(vars(module)[one]) for one in fits})
    _taken[0] = 0
    call()
    return _taken[0]


def _on_cpu(kind: str, _: int | None) -> bool:
    return kind == "cpu"


def _counting(fits: Callable[..., bool]) -> Callable[..., bool]:
    def asked(*given: object) -> bool:
        said = fits(*given)
        _taken[0] += bool(said)
        return said

    return asked
