"""Whether a call takes the kernels of a module that was made in memory, where there is no GPU."""

from __future__ import annotations

from collections.abc import Callable
from types import ModuleType
from typing import Any

import pytest
import torch


class Taken(Exception):
    """Instead of a launch."""


def takes_kernels(kernels: Any, call: Callable[[], object], monkeypatch: pytest.MonkeyPatch) -> bool:
    """Tensors of the CPU count as those of the device that the kernels are made for."""
    assert isinstance(kernels, ModuleType)

    def launched(*_: object) -> None:
        raise Taken

    names = [name for name in vars(kernels) if name.endswith("_fits") and not name.startswith("_")]
    assert names
    with monkeypatch.context() as patch, torch.no_grad():
        patch.setattr(kernels, "_tested_gpu", lambda kind, index: kind == "cpu")  # pyright: ignore
        for name in names:
            patch.setattr(kernels, name.removesuffix("_fits"), launched)
        try:
            call()
        except Taken:
            return True
    return False
