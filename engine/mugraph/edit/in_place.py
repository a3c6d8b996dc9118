"""Functions of a loaded module with their regions replaced, in place and without touching its file.

For a model whose code is spread over methods, most of them a library's: what a model calls is found by name in its
classes, so it is their code that is replaced, as `__code__`. Decorators, closures and `super()` stay as they are.
"""

from __future__ import annotations

import ast
import linecache
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from types import CodeType, FunctionType
from typing import cast
from weakref import WeakKeyDictionary

from mugraph.edit.apply import prepare
from mugraph.edit.cells.cell import EDITED, codes_of, is_defined_in
from mugraph.edit.in_memory import Origin, alias_in, kernel_module
from mugraph.ir.kernel import KernelSource
from mugraph.plans.plan import RegionPlan
from mugraph.targets import Target
from mugraph.trace.regions.user_code import layers_of


@dataclass
class LoadedFile:
    """A file that a module was loaded from, and what was found for it in this process so far.

    text: as it was when its first function was replaced. space: the module's names. is_of_session: the code was typed
    in a session, and the file was written to trace it
    """

    path: Path
    text: str
    space: dict[str, object]
    is_of_session: bool = False
    plans: list[RegionPlan] = field(default_factory=list[RegionPlan])
    sources: dict[str, KernelSource] = field(default_factory=dict[str, KernelSource])

    @property
    def taken(self) -> Sequence[str]:
        """Names of plans and kernels."""
        return [*(plan.name for plan in self.plans), *self.sources]

    def replace(self, plans: Sequence[RegionPlan], sources: Mapping[str, KernelSource], target: Target) -> None:
        """Adds what was found, and gives functions the code that calls the kernels.

        Raises TypeError where the file is not what was loaded, EditError, or ir.kernel.Rejected.
        """
        known = [plan.region for plan in self.plans]
        plans = [*self.plans, *(plan for plan in plans if plan.region not in known)]
        names = {plan.region.function for plan in plans}
        functions = {name: function for name in names if (function := self._function(name)) is not None}
        before = codes_of(compile(self.text, str(self.path), "exec", dont_inherit=True))
        for name, function in functions.items():
            loaded = _first.get(function, function.__code__)
            is_alike = is_defined_in(function, self.text) if self.is_of_session else before.get(name) == loaded
            if not is_alike:
                raise TypeError(f"{self.path} has changed since {name} was loaded from it")
        plans = [plan for plan in plans if plan.region.function in functions]
        if not plans:
            return
        both = {**self.sources, **sources}
        ready = prepare(self.text.encode(), self.path, plans, both, target=target)
        edited = ready.source.decode()
        shown = f"{self.path}{EDITED}"
        linecache.cache[shown] = (len(edited), None, edited.splitlines(keepends=True), shown)
        after = codes_of(compile(edited, shown, "exec", dont_inherit=True))
        self.space[alias_in(ast.parse(edited), ready.module.stem)] = kernel_module(
            ready, self.space if self.is_of_session else None
        )
        for name, function in functions.items():
            _first.setdefault(function, function.__code__)
            function.__code__ = after[name]
        self.plans, self.sources = plans, both

    def _function(self, qualname: str) -> FunctionType | None:
        """The one of that name, without what decorators have put around it; None where no name leads to it."""
        names = qualname.split(".")
        found: object = self.space.get(names[0])
        for name in names[1:]:
            found = cast("Mapping[str, object]", vars(found)).get(name) if isinstance(found, type) else None
        function = next((layer for _, layer in reversed([*layers_of(found)])), None)
        return function if function is not None and function.__code__.co_qualname == qualname else None


_loaded: dict[Path, LoadedFile] = {}
_first: WeakKeyDictionary[FunctionType, CodeType] = WeakKeyDictionary()
"""Of functions whose code was replaced, the code that they were loaded with."""


def loaded_file(origin: Origin) -> LoadedFile:
    """That the function was loaded from: the same one each time."""
    new = LoadedFile(origin.path, origin.text, origin.function.__globals__, origin.is_of_session)
    return _loaded.setdefault(origin.path, new)


def forget() -> None:
    """Files that are loaded from now on are other ones."""
    _loaded.clear()
