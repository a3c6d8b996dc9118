"""`math.sqrt` of a size that is unknown: PyTorch's own root of it, so that nothing has to be decided."""

from __future__ import annotations

import math
import sys
from collections.abc import Generator
from contextlib import contextmanager
from typing import Any

import torch

_ROOT = math.sqrt


def _root(number: Any, /) -> Any:
    return torch.sym_sqrt(number) if isinstance(number, torch.SymInt | torch.SymFloat) else _ROOT(number)


@contextmanager
def symbolic_roots() -> Generator[None]:
    """Under its own name in any module: what has called it another one takes a number, as before."""
    having = [module for module in [*sys.modules.values()] if getattr(module, "__dict__", {}).get("sqrt") is _ROOT]
    for module in having:
        vars(module)["sqrt"] = _root
    try:
        yield
    finally:
        for module in having:
            vars(module)["sqrt"] = _ROOT
