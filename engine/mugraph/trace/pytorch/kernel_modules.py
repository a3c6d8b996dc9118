"""Kernel modules of files that were edited before, while they or others are traced: their kernels take no call, so that
the code runs which they replace, and more than one of them replaced may be one region."""

from __future__ import annotations

import importlib.abc
import importlib.machinery
from pathlib import Path
from types import ModuleType

_MARK = "mugraph_runtime_"


def is_kernel_module(path: Path) -> bool:
    if not path.name.endswith("_mugraph.py"):
        return False
    try:
        return _MARK in path.read_text(encoding="utf-8")
    except (OSError, UnicodeDecodeError):
        return False


def takes_no_call(*_: object) -> bool:
    """In place of each of their tests."""
    return False


class KernelModule(ModuleType):
    def __getattr__(self, name: str) -> object:
        if name.endswith("_fits"):
            return takes_no_call
        raise AttributeError(name)


class KernelModules(importlib.abc.Loader):
    """Does not run them."""

    def create_module(self, spec: importlib.machinery.ModuleSpec) -> ModuleType:
        return KernelModule(spec.name)

    def exec_module(self, module: ModuleType) -> None:
        pass
