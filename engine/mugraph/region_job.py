"""One region's way through the rooms: its search units solved, a plan made of them, the plan timed."""

from __future__ import annotations

from collections.abc import Callable, Generator, Sequence
from dataclasses import dataclass, replace
from pathlib import Path

from mugraph.codegen.entry import on_tensors
from mugraph.codegen.index_limits import INTEGERS, index_limit
from mugraph.codegen.kernel import KernelSource, Rejected
from mugraph.codegen.module import module_text
from mugraph.codegen.names import Scope
from mugraph.codegen.plan import KernelStep, RegionPlan
from mugraph.codegen.scales import input_scales
from mugraph.events import Event, PieceResult, RegionResult, SearchReport, Timing, Working
from mugraph.kernel_graph import kernel_graph, with_own_names
from mugraph.log import note
from mugraph.memory.pieces import recall, remember
from mugraph.memory.timings import recall_timing, remember_timing, timing_key
from mugraph.options import Options
from mugraph.plan_names import kernel_name, plan_name
from mugraph.ranking import Place
from mugraph.search.renaming import canonical
from mugraph.solve import Tools, solve
from mugraph.store import Store
from mugraph.store.keys import region_key
from mugraph.trace.part_views import with_views
from mugraph.trace.pieces import is_divisible
from mugraph.trace.ranged import ranged_units
from mugraph.trace.region import LaxPiece, Piece, PlainPiece, Region
from mugraph.tune.device import Device
from mugraph.tune.messages import InputSpec, Subject
from mugraph.tune.tuner import Measurement, against_peers

DRAWN = frozenset({"f16", "bf16", "f32", "bool", *INTEGERS})
"""Types of inputs that measuring can make up."""

CUTS = 4
"""Ways to cut a region that are tried, where units have no kernel."""


@dataclass
class RegionJob:
    """names: taken in the kernel module so far. path: of the user's file."""

    number: int
    region: Region
    names: Scope
    device: Device
    tools: Tools
    options: Options
    store: Store | None
    cancelled: Callable[[], bool]
    path: Path

    def result(self) -> Generator[Event, None, RegionResult]:
        region = self.region
        if region.status is not None:
            return RegionResult(region, region.status, region.reason)
        try:
            return (yield from self._searched())
        except Rejected as error:
            return RegionResult(region, "unsupported", str(error))
        except Exception as error:  # one region's trouble must not cost the others their answer
            where = note(error, f"region {region.function} of {self.path}")
            return RegionResult(region, "failed", f"an internal error ({type(error).__name__}); details are in {where}")

    def _searched(self) -> Generator[Event, None, RegionResult]:
        solved, results, report = yield from self._cut_and_solved()
        region = self.region
        if not results:
            reason = "nothing in it is worth a kernel of its own"
            _, reasons = ranged_units(region)
            return RegionResult(region, "unsupported", "; ".join(dict.fromkeys(reasons)) or reason)
        name = self.names.unique(plan_name(region.function))
        steps: list[KernelStep | PlainPiece] = []
        waiting = iter(results)
        for unit in solved:
            found = next(waiting) if isinstance(unit, LaxPiece) else None
            if isinstance(unit, LaxPiece) and found is not None and found.solution is not None and _is_used(found):
                steps += [PlainPiece(unit.views)] if unit.views else []
                steps.append(KernelStep(unit, found.solution.kernel, found.solution.verdict, found.solution.then))
            else:
                steps.append(PlainPiece(unit.calls))
        merged = _merged(steps)
        sources = {r.solution.kernel.name: r.solution.source for r in results if r.solution is not None}
        if not any(isinstance(step, KernelStep) for step in merged):
            return self._without_gain(name, solved, results, sources, report)
        plan = RegionPlan(name, region, merged, kernel_graph(name, region, merged))
        timing, reason = yield from self._timed(plan, sources, results)
        status = "improved" if (timing.speedup or 0) > 1 and reason is None else "no-gain"
        if status == "no-gain" and reason is None:
            reason = "the kernel is not faster than PyTorch here, beyond what measuring can tell"
        return RegionResult(region, status, reason, plan, sources, tuple(results), timing, report)

    def _cut_and_solved(self) -> Generator[Event, None, tuple[list[Piece], list[PieceResult], SearchReport]]:
        """The region's pieces, the result of each search unit, and what all the searching took. Where no kernel is
        found for a unit with several products, the region is cut again without it."""
        refused: list[frozenset[int]] = []
        named: dict[str, str] = {}
        reports: list[SearchReport] = []
        while True:
            cut = with_own_names(ranged_units(self.region, refused)[0])
            self.region = with_views(self.region, cut)
            solved, results = yield from self._all_solved(cut, named, reports)
            failed = [found.piece for found in results if found.solution is None and is_divisible(found.piece)]
            refused += [frozenset(value for call in unit.calls for value in call.outputs) for unit in failed]
            if not failed or self.cancelled() or len(refused) >= CUTS:
                return solved, results, sum(reports[1:], reports[0]) if reports else SearchReport()

    def _all_solved(
        self, cut: Sequence[Piece], named: dict[str, str], reports: list[SearchReport]
    ) -> Generator[Event, None, tuple[list[Piece], list[PieceResult]]]:
        """named: kernels, by the name they wanted. reports: each search adds its own."""
        function, waiting = self.region.function, list(cut)
        results: list[PieceResult] = []
        solved: list[Piece] = []
        number = 0
        while waiting:
            unit = waiting.pop(0)
            if isinstance(unit, PlainPiece):
                solved.append(unit)
                continue
            count = number + sum(isinstance(other, LaxPiece) for other in (unit, *waiting, *unit.apart))
            wanted = kernel_name(function, number + 1 if count > 1 else None)
            kernel = named[wanted] = named.get(wanted) or self.names.unique(wanted)
            found = yield from self._solved(unit, Place(self.number, number, count, function, kernel))
            reports.append(found.search)
            number += 1
            if unit.apart and not _is_used(found):  # nothing is gained together; perhaps by one of them
                waiting = [*unit.apart, *waiting]
                continue
            results.append(found)
            solved.append(unit)
        return solved, results

    def _solved(self, unit: LaxPiece, place: Place) -> Generator[Event, None, PieceResult]:
        """As a unit like it was in this run, from the store, or solved and stored."""
        measuring = self.tools.measurer is not None
        program, names = canonical(unit.program)
        key = region_key(
            program,
            self.tools.target,
            device=self.device.name if measuring else "",
            driver=(self.device.driver or "") if measuring else "",
            space=f"{self.options.budget_s:g} s, {self.options.max_kernels} kernels",
        )
        if key in self.tools.solved:
            known = recall(self.tools.solved[key], unit, place.name, self.tools.target, names)
            if known is not None:  # it has cost nothing here
                return replace(known, from_store=False, search=replace(known.search, total_s=0.0))
        document = self.store.get(key) if self.store is not None else None
        if document is not None:
            known = recall(document, unit, place.name, self.tools.target, names)
            if known is not None:
                return known
        found = yield from solve(
            unit, place, self.tools, self.options.budget_s, self.cancelled, max_kernels=self.options.max_kernels
        )
        if not self.cancelled():
            self.tools.solved[key] = remember(found, names)
            if self.store is not None:
                self.store.put(key, self.tools.solved[key])
        return found

    def _without_gain(
        self,
        name: str,
        units: Sequence[LaxPiece | PlainPiece],
        results: Sequence[PieceResult],
        sources: dict[str, KernelSource],
        report: SearchReport,
    ) -> RegionResult:
        """No kernel is used. What was found, if anything, is still shown."""
        region = self.region
        solved = {id(r.piece): r.solution for r in results if r.solution is not None}
        if not solved:
            reasons = list(dict.fromkeys(r.reason for r in results if r.reason))
            return RegionResult(region, "no-gain", "; ".join(reasons) or None, pieces=tuple(results), search=report)
        steps: list[KernelStep | PlainPiece] = []
        for unit in units:
            solution = solved.get(id(unit)) if isinstance(unit, LaxPiece) else None
            if isinstance(unit, LaxPiece) and solution is not None:
                steps += [PlainPiece(unit.views)] if unit.views else []
                steps.append(KernelStep(unit, solution.kernel, solution.verdict, solution.then))
            else:
                steps.append(PlainPiece(unit.calls))
        merged = _merged(steps)
        plan = RegionPlan(name, region, merged, kernel_graph(name, region, merged))
        timing = self._estimate(results, use_all=True)
        reason = "the kernel found is not expected to be faster than PyTorch's own"
        return RegionResult(region, "no-gain", reason, plan, sources, tuple(results), timing, report)

    def _estimate(self, results: Sequence[PieceResult], use_all: bool = False) -> Timing:
        """Both sides by the cost model, over the search units; plain calls cost both the same and are left out."""
        before = after = 0.0
        for result in results:
            if result.solution is None:
                continue
            before += result.solution.library_us
            used = use_all or result.solution.pays
            after += result.solution.estimate_us if used else result.solution.library_us
        ratio = before / after if after else None
        device = self.tools.target.name if self.tools.target.capability else "h100"
        return Timing(before, after, ratio, {}, "estimated", device, f"cost model for {device}, operator by operator")

    def _timed(
        self, plan: RegionPlan, sources: dict[str, KernelSource], results: Sequence[PieceResult]
    ) -> Generator[Event, None, tuple[Timing, str | None]]:
        """Measured where there is a GPU, else estimated; and why it cannot be offered, if so."""
        estimate = self._estimate(results)
        measurer = self.tools.measurer
        specs = _specs(plan)
        if measurer is None or specs is None:
            return estimate, None
        text = module_text([plan], sources, original_path=self.path, target=self.tools.target)
        ours = Subject("mugraph", text, on_tensors(plan))
        key = timing_key(text, ours.function, specs, self.device)
        document = self.store.get(key) if self.store is not None else None
        known = recall_timing(document) if document is not None else None
        if known is not None:
            return known
        yield Working(self.number, f"measuring {plan.name} against eager, torch.compile and max-autotune")
        eager = Subject("eager", text, f"_{plan.name}_reference")
        measured = against_peers(ours, eager, specs, measurer)
        timing = _timing(measured)
        if self.store is not None and timing.speedup is not None:
            self.store.put(key, remember_timing(timing, measured.reason))
        return timing, measured.reason


def _timing(measured: Measurement) -> Timing:
    best = measured.peers[measured.best_peer] if measured.best_peer else None
    speedup = measured.speedup if measured.us is not None and best is not None else None
    return Timing(best, measured.us, speedup, measured.peers, "measured", measured.device, measured.method)


def _is_used(found: PieceResult) -> bool:
    return found.solution is not None and found.solution.pays


def _merged(steps: Sequence[KernelStep | PlainPiece]) -> tuple[KernelStep | PlainPiece, ...]:
    """Neighbouring plain pieces as one."""
    merged: list[KernelStep | PlainPiece] = []
    for step in steps:
        last = merged[-1] if merged else None
        if isinstance(step, PlainPiece) and isinstance(last, PlainPiece):
            merged[-1] = PlainPiece((*last.calls, *step.calls))
        else:
            merged.append(step)
    return tuple(merged)


def _specs(plan: RegionPlan) -> tuple[InputSpec, ...] | None:
    """The region's arguments for measuring, scaled as its search units need; None for a type that cannot be drawn."""
    scales = input_scales(plan)
    specs: list[InputSpec] = []
    for live in plan.region.live_ins:
        info = plan.region.values[live.value]
        high = index_limit(plan.region, live.value) if info.dtype in INTEGERS else 2
        if (high is None and info.triangle is None) or info.dtype not in DRAWN:
            return None
        scale = scales.get(live.value, 1.0)
        specs.append(InputSpec(info.shape, info.strides, info.dtype, scale, high or 2, info.triangle))
    return tuple(specs)
