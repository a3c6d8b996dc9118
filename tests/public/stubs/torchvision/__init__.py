"""Stands for torchvision where it is imported and not needed. What is imported from it is an empty class."""

from __future__ import annotations

import sys
from importlib.abc import Loader, MetaPathFinder
from importlib.machinery import ModuleSpec
from types import ModuleType

__version__ = "0.24.0"


class _Empty(type):
    """A class that has every name."""

    def __getattr__(cls, name: str) -> type:
        return _empty(name)


def _empty(name: str) -> type:
    if name.startswith("__"):
        raise AttributeError(name)
    return _Empty(name, (), {})


class _Inner(MetaPathFinder, Loader):
    """Its modules."""

    def find_spec(self, fullname: str, path: object = None, target: object = None) -> ModuleSpec | None:
        return ModuleSpec(fullname, self, is_package=True) if fullname.startswith("torchvision.") else None

    def exec_module(self, module: ModuleType) -> None:
        vars(module)["__getattr__"] = _empty


__getattr__ = _empty
sys.meta_path.append(_Inner())
