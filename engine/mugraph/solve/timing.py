"""A region's time beside PyTorch's: measured where there is a GPU, else estimated. With a range, at several of its
sizes."""

from __future__ import annotations

import time
from collections.abc import Callable, Generator, Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import Path

from mugraph.edit.module.entry import on_tensors
from mugraph.edit.module.file import module_text
from mugraph.edit.module.index_limits import index_limit
from mugraph.events import Event, Timing, UnitResult, Working
from mugraph.ir.dtypes import DRAWN, INTEGERS
from mugraph.ir.kernel import KernelSource
from mugraph.ir.ranges import SizeRange
from mugraph.ir.region import Region
from mugraph.memory.timings import recall_timing, remember_timing, timing_key
from mugraph.optimizer.nodes import scheduled
from mugraph.plans.plan import RegionPlan
from mugraph.plans.scales import input_scales
from mugraph.sizes.search_unit import estimates_at, unit_at
from mugraph.sizes.timing import next_size, of_sizes
from mugraph.solve.tools import Tools
from mugraph.store import Store
from mugraph.targets import figures_of
from mugraph.tune.device import Device
from mugraph.tune.messages import InputSpec, Subject
from mugraph.tune.tuner import Measurement, against_peers
from mugraph.units.ranged import region_at

PATIENCE = 9
"""Times the seconds that a search may take: for measuring at further sizes than the largest and the least."""


@dataclass
class RegionTimer:
    """number: of the region, for events. path: of the user's file. budget_s: seconds of one search."""

    number: int
    device: Device
    tools: Tools
    store: Store | None
    path: Path
    budget_s: float
    cancelled: Callable[[], bool]

    def timed(
        self, plan: RegionPlan, sources: Mapping[str, KernelSource], results: Sequence[UnitResult]
    ) -> Generator[Event, None, tuple[Timing, str | None]]:
        """The plan's time, and why it cannot be offered, if so."""
        text = module_text([plan], sources, original_path=self.path, target=self.tools.target, alone=True)
        if plan.region.dynamic is None:
            return (yield from self._timed(plan, plan.region, text, results, ""))
        size = plan.region.dynamic.range
        timings: dict[int, Timing] = {}
        began = time.monotonic()
        while (at := next_size(size, _gains(timings))) is not None:
            late = self.cancelled() or time.monotonic() - began > PATIENCE * self.budget_s
            if late and len(timings) > 1:
                break
            place = f"{size.name} = {at}"
            small = region_at(plan.region, at)
            timings[at], reason = yield from self._timed(plan, small, text, results, place, at)
            if reason is not None:
                return of_sizes(size, timings), f"with {place}: {reason}"
        return of_sizes(size, timings), None

    def estimated(self, region: Region, results: Sequence[UnitResult], *, use_all: bool = False) -> Timing:
        """The time by the cost model. use_all: also with kernels that do not pay"""
        if region.dynamic is None:
            return self._estimate(region, results, None, use_all)
        size = region.dynamic.range
        timings: dict[int, Timing] = {}
        while (at := next_size(size, _gains(timings))) is not None:
            timings[at] = self._estimate(region, results, at, use_all)
        return of_sizes(size, timings)

    def _estimate(
        self, region: Region, results: Sequence[UnitResult], size: int | None, use_all: bool = False
    ) -> Timing:
        """Both sides by the cost model, over the search units. Plain calls cost both the same and are left out.

        size: of a range; None where there is none
        """
        before = after = 0.0
        for result in results:
            solution = result.solution
            if solution is None:
                continue
            ours, library = solution.estimate_us, solution.library_us
            if size is not None:
                program = unit_at(result.unit, region, size).program
                kernels = [scheduled(kernel) for kernel in solution.kernels]
                ours, library = estimates_at(program, kernels, solution.source, self.tools.target)
            before += library
            after += ours if use_all or solution.pays else library
        ratio = before / after if after else None
        device = figures_of(self.tools.target).name
        return Timing(before, after, ratio, {}, "estimated", device, f"cost model for {device}, operator by operator")

    def _timed(
        self,
        plan: RegionPlan,
        region: Region,
        text: str,
        results: Sequence[UnitResult],
        place: str,
        size: int | None = None,
    ) -> Generator[Event, None, tuple[Timing, str | None]]:
        """Measured at one size.

        region: the plan's at this size
        text:   of its kernel module
        place:  "b = 16", or ""
        """
        measurer = self.tools.measurer
        specs = _specs(plan, region)
        if measurer is None or specs is None:
            return self._estimate(plan.region, results, size), None
        ours = Subject("mugraph", text, on_tensors(plan))
        key = timing_key(text, ours.function, specs, self.device)
        document = self.store.get(key) if self.store is not None else None
        known = recall_timing(document) if document is not None else None
        if known is not None:
            return known
        where = f" at {place}" if place else ""
        yield Working(self.number, f"measuring {plan.name}{where} against eager, torch.compile and max-autotune")
        eager = Subject("eager", text, f"_{plan.name}_reference")
        measured = against_peers(ours, eager, specs, measurer)
        timing = _timing(measured)
        if self.store is not None and timing.speedup is not None:
            self.store.put(key, remember_timing(timing, measured.reason))
        return timing, measured.reason


def with_sizes(plan: RegionPlan, spans: Sequence[tuple[int, int]]) -> RegionPlan:
    """The plan, to run only in these spans of its size."""
    size: SizeRange | None = plan.region.dynamic.range if plan.region.dynamic is not None else None
    if size is None or tuple(spans) == ((size.least, size.largest),):
        return plan
    return replace(plan, faster_for=tuple(spans))


def _gains(timings: Mapping[int, Timing]) -> dict[int, bool]:
    return {size: (timing.speedup or 0) > 1 for size, timing in timings.items()}


def _timing(measured: Measurement) -> Timing:
    best = measured.peers[measured.best_peer] if measured.best_peer else None
    speedup = measured.speedup if measured.us is not None and best is not None else None
    return Timing(best, measured.us, speedup, measured.peers, "measured", measured.device, measured.method)


def _specs(plan: RegionPlan, region: Region) -> tuple[InputSpec, ...] | None:
    """The region's arguments for measuring, scaled as its search units need; None for a type that cannot be drawn.

    region: the plan's, at the size that is measured
    """
    scales = input_scales(plan)
    specs: list[InputSpec] = []
    for live in region.live_ins:
        info = region.values[live.value]
        high = index_limit(region, live.value) if info.dtype in INTEGERS else 2
        if (high is None and info.triangle is None) or info.dtype not in DRAWN:
            return None
        scale = scales.get(live.value, 1.0)
        specs.append(InputSpec(info.shape, info.strides, info.dtype, scale, high or 2, info.triangle))
    return tuple(specs)
