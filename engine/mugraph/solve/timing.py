"""A region's time beside PyTorch's: measured where there is a GPU, on the device and as it is called, else estimated.
With a range, at several of its sizes; what further sizes vary are the largest and the least at each of them."""

from __future__ import annotations

import logging
import time
from collections.abc import Callable, Generator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from functools import cache, partial
from pathlib import Path

from mugraph.baseline.beside import beside
from mugraph.baseline.estimate import Baseline
from mugraph.edit.apply import EditError, prepare
from mugraph.edit.module.entry import on_tensors
from mugraph.edit.module.file import module_text
from mugraph.edit.module.runtime import RUNTIME, RUNTIME_NAME
from mugraph.events import Called, Clock, Event, Timing, UnitResult, Working
from mugraph.ir.kernel import KernelSource, Rejected
from mugraph.ir.ranges import Point, SizeRange
from mugraph.ir.region import PlainCalls, Region
from mugraph.memory.timings import recall_timing, remember_timing, timing_key
from mugraph.ops.tf32 import settings_of
from mugraph.optimizer.nodes import scheduled
from mugraph.plans.plan import RegionPlan
from mugraph.protocol.gain_words import CODE
from mugraph.sizes.search_unit import estimates_at, unit_at
from mugraph.sizes.timing import next_size, of_sizes
from mugraph.solve.ahead import kernels_of_module
from mugraph.solve.code import code_of
from mugraph.solve.compiled_peers import CompiledPeers
from mugraph.solve.offering import judged
from mugraph.solve.programs import ProgramText
from mugraph.solve.pytorch import kept_us, pytorch_us, written_us
from mugraph.solve.tools import Tools
from mugraph.store import Store
from mugraph.targets import figures_of
from mugraph.tune.against import Measurement, Times, against_peers
from mugraph.tune.device import Device
from mugraph.tune.measure import METHOD
from mugraph.tune.messages import Applied, Subject
from mugraph.units.layouts import plain_calls_of
from mugraph.units.ranged import region_at

_log = logging.getLogger("mugraph.solve")
PATIENCE = 9
"""Times the seconds that a search may take: for measuring at further sizes than the largest and the least."""


@dataclass
class RegionTimer:
    """number: of the region, for events. path: of the user's file. budget_s: seconds of one search. program: None where
    the file's text is not known: then what is called is timed without the guards of its objects."""

    number: int
    device: Device
    tools: Tools
    store: Store | None
    path: Path
    budget_s: float
    cancelled: Callable[[], bool]
    program: ProgramText | None = None
    peers: CompiledPeers = field(init=False)

    def __post_init__(self) -> None:
        self.peers = CompiledPeers(self.number, self.tools, self.cancelled)

    def timed(
        self, plan: RegionPlan, sources: Mapping[str, KernelSource], results: Sequence[UnitResult]
    ) -> Generator[Event, None, tuple[Timing, str | None]]:
        """The plan's time, and why it cannot be offered, if so. Raises Rejected."""
        if self.tools.measurer is None and plan.region.dynamic is None:  # a long module takes seconds to write
            estimate = self.estimated(plan, results)
            if not estimate.gains:
                return estimate, None
        text = cache(partial(self.module_text, plan, sources))
        if self.tools.measurer is None or self.program is None:  # whatever cannot be written is not offered
            text()
        if plan.region.dynamic is None:
            return (yield from self._timed(plan, plan.region, text, sources, results, ""))
        size = plan.region.dynamic.range
        timings: dict[int, Timing] = {}
        began = time.monotonic()
        while (at := next_size(size, _gains(timings))) is not None:
            late = self.cancelled() or time.monotonic() - began > PATIENCE * self.budget_s
            if late and len(timings) > 1:
                break
            found: list[Timing] = []
            for corner in plan.region.dynamic.corners:
                point = {size.name: at, **corner}
                place = ", ".join(f"{name} = {one}" for name, one in point.items())
                small = region_at(plan.region, point)
                timing, reason = yield from self._timed(plan, small, text, sources, results, place, point)
                found.append(timing)
                if reason is not None:
                    return of_sizes(size, {**timings, at: _least_gain(found)}), f"with {place}: {reason}"
            timings[at] = _least_gain(found)
        return of_sizes(size, timings), None

    def estimated(self, plan: RegionPlan, results: Sequence[UnitResult], *, use_all: bool = False) -> Timing:
        """The time by the cost model. use_all: also with kernels that do not pay"""
        dynamic = plan.region.dynamic
        if dynamic is None:
            return judged(self._estimate(plan, results, None, use_all), self.tools.compare_with)
        size = dynamic.range
        timings: dict[int, Timing] = {}
        while (at := next_size(size, _gains(timings))) is not None:
            points = [{size.name: at, **corner} for corner in dynamic.corners]
            found = [self._estimate(plan, results, point, use_all) for point in points]
            timings[at] = _least_gain([judged(one, self.tools.compare_with) for one in found])
        return of_sizes(size, timings)

    def alone(self, results: Sequence[UnitResult]) -> Timing | None:
        """Of a region that is one unit, where its kernel was measured beside the code as it runs, and nothing else."""
        (solution,) = (one.solution for one in results) if len(results) == 1 else (None,)
        if solution is None or solution.measured_us is None or solution.plain_us is None:
            return None
        plain, ours = solution.plain_us, solution.measured_us
        gain, peers = plain / ours, {CODE: plain}
        timing = Timing(plain, ours, gain, peers, CODE, gain, source="measured", device=self.device.name, method=METHOD)
        return judged(timing, self.tools.compare_with)

    def _estimate(
        self, plan: RegionPlan, results: Sequence[UnitResult], size: Point | None, use_all: bool = False
    ) -> Timing:
        """Both sides by the cost model. What stays PyTorch's is on both; what the host takes to call is on neither.

        size: of each range; None where there is none
        """
        region, target = plan.region, self.tools.target
        pytorch, ours_us, computed = list[Baseline](), list[float](), set[int]()
        for result in results:
            solution = result.solution
            if solution is None or plain_calls_of(region, result.unit):
                continue
            unit, ours = result.unit, solution.estimate_us
            computed.update(value for call in unit.calls for value in call.outputs)
            if size is not None:
                unit = unit_at(unit, region, size)
                kernels = [scheduled(kernel) for kernel in solution.kernels]
                ours, _ = estimates_at(unit.program, kernels, solution.source, target)
            pytorch.append(written_us(region, unit, target))
            ours_us.append(ours if use_all or solution.pays else pytorch_us(unit, target).eager_us)
        if not pytorch:
            return Timing()
        steps = [step if isinstance(step, PlainCalls) else step.unit for step in plan.steps]
        plain = [call for step in steps for call in plain_calls_of(region, step)]
        kept = kept_us(region, [call for call in plain if computed.isdisjoint(call.outputs)], size, target)
        if kept is not None:
            pytorch.append(kept[0])
            ours_us.append(kept[1])
        found = beside(pytorch, ours_us)
        if found is None:
            return Timing()
        device = figures_of(target).name
        return Timing(
            found.code_us,
            found.us,
            found.gain,
            found.peers_us,
            found.best_peer,
            found.best_gain,
            source="estimated",
            device=device,
            method=f"cost model for {device}, against what PyTorch would run",
        )

    def _timed(
        self,
        plan: RegionPlan,
        region: Region,
        text: Callable[[], str],
        sources: Mapping[str, KernelSource],
        results: Sequence[UnitResult],
        place: str,
        size: Point | None = None,
    ) -> Generator[Event, None, tuple[Timing, str | None]]:
        """Measured at one size.

        region: the plan's at this size
        text:   of its kernel module, where the edited file is not at hand. Raises Rejected
        place:  "b = 16", or ""
        """
        measurer = self.tools.measurer
        specs = self.peers.specs(plan, region) if measurer is not None else None
        if measurer is None or specs is None:
            return judged(self._estimate(plan, results, size), self.tools.compare_with), None
        names = self.peers.names
        with self.tools.on("code generation"):
            applied = self._applied(plan, sources, size)
        tf32 = settings_of(region.calls)
        if applied is None:
            ours = Subject("mugraph", text(), on_tensors(plan), tf32=tf32)
        else:  # one text, whose kernels are compiled once
            beside = tuple(applied.beside.items())
            ours = Subject("mugraph", applied.module_text, on_tensors(plan), beside=beside, tf32=tf32)
        key = timing_key(ours, specs, self.device, names, applied.text if applied is not None else "")
        document = self.store.get(key) if self.store is not None else None
        known = recall_timing(document) if document is not None else None
        if known is not None:
            return judged(known[0], self.tools.compare_with), known[1]
        where = f" at {place}" if place else ""
        self.peers.begin()
        self.peers.begin_later()
        if self.tools.pool is not None:  # by the time that the device is quiet
            self.tools.pool.compile([*kernels_of_module(ours.source, sources.values())])
        in_time = yield from self.peers.in_time()
        if not in_time:
            _log.info("%s is compared with the code as it runs alone: torch.compile takes too long", plan.name)
            names = names[:1]
        yield Working(self.number, f"measuring {plan.name}{where} against {_listed(names)}")
        eager = code_of(region, plan)
        peers = self.tools.peers.measurer if self.tools.peers is not None and in_time else measurer
        # Which of several roundings counts depends on what else the program multiplies and adds.
        several = sum(bool(call.tf32) for call in region.calls) > 1
        measured = against_peers(ours, eager, specs, peers, applied=applied, names=names, on_its_own=several)
        timing = _timing(measured)
        lacks = self.cancelled() or not in_time
        if self.store is not None and timing.speedup is not None and not lacks:
            self.store.put(key, remember_timing(timing, measured.reason))
        return judged(timing, self.tools.compare_with), measured.reason

    def module_text(self, plan: RegionPlan, sources: Mapping[str, KernelSource]) -> str:
        """Takes seconds for a whole model. Raises Rejected."""
        with self.tools.on("code generation"):
            return module_text([plan], sources, original_path=self.path, target=self.tools.target, alone=True)

    def _applied(self, plan: RegionPlan, sources: Mapping[str, KernelSource], sizes: Point | None) -> Applied | None:
        """What the program calls once this region alone is replaced, with these sizes; None where its file's text is
        not at hand, or takes no edit."""
        if self.program is None:
            return None
        region, path = plan.region, self.path.resolve()
        try:
            ready = prepare(self.program.text.encode(), path, [plan], sources, target=self.tools.target)
        except (EditError, Rejected, UnicodeError):
            return None
        return Applied(
            str(path),
            ready.source.decode(),
            ready.module.stem,
            ready.module_text,
            region.function,
            f"{plan.name}_fits",
            plan.name,
            {f"{RUNTIME_NAME}.py": RUNTIME},
            self.program.recorded,
            self.program.pictures,
            sizes,
        )


def with_sizes(plan: RegionPlan, spans: Sequence[tuple[int, int]]) -> RegionPlan:
    """The plan, to run only in these spans of its size."""
    size: SizeRange | None = plan.region.dynamic.range if plan.region.dynamic is not None else None
    if size is None or tuple(spans) == ((size.least, size.largest),):
        return plan
    return replace(plan, faster_for=tuple(spans))


def _least_gain(timings: Sequence[Timing]) -> Timing:
    """Of times at one size, others being the largest and the least: a kernel is offered where it gains at both."""
    return min(timings, key=lambda one: (one.gains, one.speedup or 0.0))


def _gains(timings: Mapping[int, Timing]) -> dict[int, bool]:
    return {size: timing.gains for size, timing in timings.items()}


def _timing(measured: Measurement) -> Timing:
    called = measured.as_called
    as_called = Called(**vars(_clock(called)), method=measured.called_method) if called.us is not None else None
    return Timing(
        **vars(_clock(measured.on_device)),
        as_called=as_called,
        source="measured",
        device=measured.device,
        method=measured.method,
    )


def _clock(times: Times) -> Clock:
    return Clock(times.peers.get(CODE), times.us, times.gain, times.peers, times.best_peer, times.best_gain)


def _listed(names: Sequence[str]) -> str:
    *others, last = names
    return f"{', '.join(others)} and {last}" if others else last
