"""Functions of other libraries, instrumented as soon as the program calls them.

A model is rarely one file: its activation, its attention and its cache are another package's. Packages are too large to
be instrumented as they are imported (one that has Llama imports 100,000 lines). So a function is looked at when the
program calls it. Its file is rewritten then, once, and the function gets its code of the rewritten file.
"""

from __future__ import annotations

import functools
import sys
from collections.abc import Iterator
from operator import attrgetter
from pathlib import Path
from types import CodeType, FunctionType, MethodType
from typing import cast

import torch

from mugraph.trace.pytorch.callables import HOOKS, is_of_another_library
from mugraph.trace.run.loader import Workspace
from mugraph.trace.syntax.source import Source, read_source

_Place = tuple[int, str]
_CALL = attrgetter("__call__")
_LONGEST = 2_000_000
"""Bytes of a file that is read: longer ones are data."""


class Libraries:
    def __init__(self, workspace: Workspace) -> None:
        self._workspace = workspace
        self._codes: dict[str, dict[_Place, CodeType]] = {}  # by file; empty where it cannot be instrumented
        self._seen: set[FunctionType] = set()
        self._with_torch: set[str] = set()  # packages

    def prepare(self, called: object) -> None:
        """Instruments what a call will run, where it is a library's."""
        for function in functions_of(called):
            if function not in self._seen:
                self._seen.add(function)
                self._instrument(function)

    def _instrument(self, function: FunctionType) -> None:
        code = function.__code__
        module = function.__globals__.get("__name__")
        if HOOKS in code.co_names or not is_of_another_library(module) or not self._has_torch(str(module)):
            return
        path = code.co_filename
        if path not in self._codes:
            self._codes[path] = self._of_file(path)
        new = self._codes[path].get((code.co_firstlineno, code.co_qualname))
        if new is None or new.co_freevars != code.co_freevars:
            return
        function.__globals__[HOOKS] = self._workspace.recorder
        function.__code__ = new

    def _has_torch(self, module: str) -> bool:
        """Whether any module of its package that is imported has PyTorch under its name: others compute no tensors."""
        root = module.partition(".")[0]
        if root not in self._with_torch:
            inside = (one for name, one in [*sys.modules.items()] if name.partition(".")[0] == root)
            if not any(getattr(one, "__dict__", {}).get("torch") is torch for one in inside):
                return False
            self._with_torch.add(root)
        return True

    def _of_file(self, path: str) -> dict[_Place, CodeType]:
        if not path.endswith(".py"):
            return {}
        try:
            if Path(path).stat().st_size > _LONGEST:
                return {}
            code = self._workspace.compile(Source(path, read_source(Path(path))), is_own=False)
        except (OSError, SyntaxError, ValueError, RecursionError):
            return {}  # it stays a library of which nothing is known
        return _by_place(code)


def functions_of(called: object) -> Iterator[FunctionType]:
    """The Python functions that a call runs first, with those that decorators have put another one around."""
    while isinstance(called, functools.partial):
        called = cast("functools.partial[object]", called).func
    if isinstance(called, MethodType):
        called = called.__func__
    if isinstance(called, torch.nn.Module):
        yield from _unwrapped(type(called).forward)
    if not isinstance(called, FunctionType | type):
        called = _CALL(type(called))
    yield from _unwrapped(called)


def _unwrapped(function: object) -> Iterator[FunctionType]:
    while isinstance(function, FunctionType):
        yield function
        function = function.__dict__.get("__wrapped__")


def _by_place(module: CodeType) -> dict[_Place, CodeType]:
    """The codes of functions by their first line and their name; those that share both are left out."""
    found: dict[_Place, CodeType] = {}
    twice: set[_Place] = set()
    waiting = [module]
    while waiting:
        for inner in waiting.pop().co_consts:
            if isinstance(inner, CodeType):
                place = inner.co_firstlineno, inner.co_qualname
                (twice.add(place) if place in found else found.setdefault(place, inner))
                waiting.append(inner)
    return {place: code for place, code in found.items() if place not in twice}
