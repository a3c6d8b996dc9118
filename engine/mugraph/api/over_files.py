"""A callable of the running program, searched in its own file and in those of a module's parts, with one budget."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import Generic, ParamSpec, TypeVar

from torch.nn import Module

from mugraph import pipeline
from mugraph.edit import in_memory, in_place, inner_calls
from mugraph.edit.in_memory import Origin
from mugraph.events import Done, Event, FileResult, Traced
from mugraph.ir.region import Trace
from mugraph.options import Options
from mugraph.recording.runs import Runs
from mugraph.solve.tools import Tools
from mugraph.store import Store
from mugraph.tune.device import detect, resolve

P = ParamSpec("P")
R = TypeVar("R")
_LEAST = 0.02
"""Part of a module's time that code in another file takes at least, for a search of its own: a file takes seconds to
trace."""
_LEAST_S = 5.0
"""Seconds that a file gets at least, once it is begun."""


@dataclass(frozen=True)
class Searched(Generic[P, R]):
    """left_out: what was not searched and why, in sentences"""

    replacement: Callable[P, R]
    results: Sequence[FileResult]
    left_out: Sequence[str]


@dataclass
class OverFiles:
    """told: each event. reached: classes whose code ran in regions that were found. why_none: of files without regions,
    why their functions have none"""

    options: Options
    told: Callable[[Event], None]
    reached: set[str] = field(default_factory=set[str])
    why_none: list[str] = field(default_factory=list[str])

    def search(
        self,
        fn: Callable[P, R],
        origin: Origin,
        runs: Runs,
        inputs: Sequence[object],
        keywords: Mapping[str, object],
    ) -> Searched[P, R]:
        """Raises ValueError where the callable's own file cannot be traced."""
        model = origin.module
        others = inner_calls.by_file(model, origin.path, inputs, keywords) if isinstance(model, Module) else []
        device = detect()
        target = resolve(self.options.target, device)
        replacement, results, left_out = fn, list[FileResult](), list[str]()

        def own_s(_: Trace) -> float:
            """What is left by the files whose code is in no region of its own."""
            parts = [part for one in others if (part := one.part(self.reached)) >= _LEAST]
            return max(_LEAST_S, self.options.file_budget_s * (1 - sum(parts)))

        with Store.open() as store, pipeline.working(device, target, self.options) as tools:
            result = self._searched(origin, origin.qualname, runs, own_s, tools, store)
            if result.errors and not result.regions:
                raise ValueError(result.errors[0])
            results.append(result)
            plans, sources, _ = pipeline.improved(result.regions)
            if plans and origin.is_plain and all(plan.region.function == origin.qualname for plan in plans):
                replacement = in_memory.replacement(fn, origin, plans, sources, result.device.target)
            else:
                _put_in_place(origin, result)
            for other in sorted(others, key=lambda one: -one.part(self.reached)):
                part = other.part(self.reached)
                if part == 0:
                    continue
                if part < _LEAST:
                    left_out.append(f"{other.origin.path} was not searched: its code takes {part:.1%} of a call")
                    continue
                seconds = max(_LEAST_S, self.options.file_budget_s * part)
                calls = Runs(pictures=other.pictures(self.reached))
                results.append(self._searched(other.origin, None, calls, lambda _, s=seconds: s, tools, store))
                _put_in_place(other.origin, results[-1])
        return Searched(replacement, results, [*left_out, *self.why_none])

    def _searched(
        self,
        origin: Origin,
        qualname: str | None,
        runs: Runs,
        seconds: Callable[[Trace], float],
        tools: Tools,
        store: Store,
    ) -> FileResult:
        """seconds: for the file, once it is traced"""
        taken, source = in_place.loaded_file(origin).taken, origin.traceable()
        for event in pipeline.run(
            origin.path,
            qualname,
            self.options,
            source=source,
            runs=runs,
            store=store,
            tools=tools,
            taken=taken,
            file_budget_s=seconds,
        ):
            self.told(event)
            if isinstance(event, Traced):
                self._reach(event.trace)
                if all(region.status == "needs-shapes" for region in event.trace.regions):
                    self.why_none += [f"{origin.path}: {notice}" for notice in event.trace.notices]
            if isinstance(event, Done):
                regions = event.result.regions
                asked = [region for region in regions if qualname is not None or region.status != "needs-shapes"]
                return replace(event.result, regions=tuple(asked))
        raise AssertionError("the pipeline ended without a result")

    def _reach(self, trace: Trace) -> None:
        self.reached.update(name for region in trace.regions for name in region.ran)


def _put_in_place(origin: Origin, result: FileResult) -> None:
    plans, sources, _ = pipeline.improved(result.regions)
    if plans:
        in_place.loaded_file(origin).replace(plans, sources, result.device.target)
