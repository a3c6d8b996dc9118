"""The one place that calls the rooms in order: trace, search, verify, optimize, codegen, tune, store.

`run` yields events and ends with Done. It reads files and starts processes; it writes nothing but the store.
"""

from __future__ import annotations

import contextlib
import re
import time
from collections.abc import Callable, Generator, Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path

from mugraph.codegen.entry import on_tensors
from mugraph.codegen.kernel import KernelSource, Rejected
from mugraph.codegen.module import module_text
from mugraph.codegen.names import Scope, identifier
from mugraph.codegen.plan import KernelStep, RegionPlan
from mugraph.codegen.wrapper_evidence import Speed
from mugraph.events import (
    Done,
    Event,
    FileResult,
    PieceResult,
    RegionDone,
    RegionResult,
    SearchReport,
    Solution,
    Timing,
    Traced,
    Working,
)
from mugraph.ir.target import Target
from mugraph.kernel_graph import kernel_graph, with_own_names
from mugraph.log import note
from mugraph.memory import recall, remember
from mugraph.solve import Place, Tools, solve
from mugraph.store import Store
from mugraph.store.keys import region_key
from mugraph.trace.entries import RecordedShapes
from mugraph.trace.pieces import pieces
from mugraph.trace.region import LaxPiece, PlainPiece, Region, Trace
from mugraph.trace.tracer import trace_file
from mugraph.tune.compile_pool import CompilePool
from mugraph.tune.device import Device, detect, resolve
from mugraph.tune.measure import Measurer
from mugraph.tune.messages import InputSpec, Subject
from mugraph.tune.tuner import Measurement, against_peers, input_specs
from mugraph.verify.float_test import FloatTester

SPACE = "single kernel, at most two loops, slack 2; schedules 1"
"""Part of every stored result's key: raise it whenever the search or the schedules change what they find."""


@dataclass(frozen=True)
class Options:
    """target: as --target takes it. budget_s: seconds of search for one search unit. measure: on a GPU, if there is
    one. trace_timeout_s: for running the user's module."""

    target: str = "auto"
    budget_s: float = 20.0
    measure: bool = True
    trace_timeout_s: float = 60.0


def run(
    path: Path,
    qualname: str | None = None,
    options: Options | None = None,
    *,
    source: str | None = None,
    recorded_shapes: RecordedShapes | None = None,
    store: Store | None = None,
    cancelled: Callable[[], bool] = lambda: False,
) -> Iterator[Event]:
    """Optimise a file. source: its text if it is not what the disk holds. store: None keeps nothing.

    Raises tune.device.UnknownTarget; everything the file itself is to blame for is in Done's result.
    """
    options = options or Options()
    device = detect()
    target = resolve(options.target, device)
    began = time.monotonic()
    trace = trace_file(
        path,
        source=source,
        qualname=qualname,
        recorded_shapes=recorded_shapes,
        timeout_s=options.trace_timeout_s,
    )
    yield Traced(trace, time.monotonic() - began)
    yield from run_trace(trace, device, target, options, store, cancelled)


def run_trace(
    trace: Trace,
    device: Device,
    target: Target,
    options: Options,
    store: Store | None = None,
    cancelled: Callable[[], bool] = lambda: False,
) -> Iterator[Event]:
    """Optimise what was traced."""
    names = Scope()
    results: list[RegionResult] = []
    measuring = options.measure and device.kind == "gpu" and target.capability == device.capability
    with contextlib.ExitStack() as stack:
        tester = stack.enter_context(FloatTester("cuda" if measuring else "interpreter"))
        tools = Tools(target, tester)
        if measuring:
            tools.measurer = stack.enter_context(Measurer())
            tools.pool = stack.enter_context(CompilePool())
        for number, region in enumerate(trace.regions):
            job = _Job(number, region, names, device, tools, options, store, cancelled, Path(trace.path))
            result = yield from job.result()
            results.append(result)
            yield RegionDone(number, result)
    errors, preview = list(trace.errors), None
    try:
        preview = preview_text(results, Path(trace.path), target)
    except Rejected as error:
        errors.append(f"the kernel module cannot be written: {error}")
    yield Done(FileResult(trace.path, device, tuple(results), tuple(errors), preview))


def improved(results: Sequence[RegionResult]) -> tuple[list[RegionPlan], dict[str, KernelSource], dict[str, Speed]]:
    """What codegen needs to write the improved regions."""
    plans: list[RegionPlan] = []
    sources: dict[str, KernelSource] = {}
    speeds: dict[str, Speed] = {}
    for result in results:
        if result.status == "improved" and result.plan is not None:
            plans.append(result.plan)
            sources.update(result.sources)
            if result.timing.speedup is not None:
                place = f"{result.timing.device}, {result.timing.method}".strip(", ")
                speeds[result.plan.name] = Speed(result.timing.speedup, result.timing.source, place)
    return plans, sources, speeds


def preview_text(results: Sequence[RegionResult], path: Path, target: Target) -> str | None:
    """The kernel module for the improved regions; None without any. Raises codegen's Rejected."""
    plans, sources, speeds = improved(results)
    if not plans:
        return None
    return module_text(plans, sources, original_path=path, target=target, speeds=speeds)


_WORDS = re.compile(r"(?<=[a-z0-9])(?=[A-Z][a-z])|(?<=[a-z]{3})(?=[A-Z])|(?<=[A-Z])(?=[A-Z][a-z])")
"""Between the words of a class name; short mixed ones ("LoRA", "MoE", "SwiGLU") are one word."""


def plan_name(function: str) -> str:
    """ "RMSNormLinear.forward" -> "rms_norm_linear", "LoRALinear.merge" -> "lora_linear_merge"."""
    name = function.removesuffix(".forward").replace(".<locals>", "")
    return identifier(_WORDS.sub("_", name)).lower()


def kernel_name(function: str, number: int | None) -> str:
    """ "RMSNormLinear.forward" -> "rms_norm_linear_fused"; "rms_norm_linear_2" for one of several."""
    return f"{plan_name(function)}_{'fused' if number is None else number}"


@dataclass
class _Job:
    """One region's way through the rooms."""

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
        region = self.region
        units = with_own_names(pieces(region))
        lax = [unit for unit in units if isinstance(unit, LaxPiece)]
        if not lax:
            return RegionResult(region, "unsupported", "nothing in it is worth a kernel of its own")
        name = self.names.unique(plan_name(region.function))
        results: list[PieceResult] = []
        steps: list[KernelStep | PlainPiece] = []
        report = SearchReport()
        for unit in units:
            if isinstance(unit, PlainPiece):
                steps.append(unit)
                continue
            kernel = self.names.unique(kernel_name(region.function, len(results) + 1 if len(lax) > 1 else None))
            place = Place(self.number, len(results), len(lax), region.function, kernel)
            found = yield from self._solved(unit, place)
            report = found.search if not results else report + found.search
            results.append(found)
            if found.solution is not None and self._pays(found.solution):
                steps.append(KernelStep(unit, found.solution.kernel, found.solution.verdict))
            else:
                steps.append(PlainPiece(unit.calls))
        merged = _merged(steps)
        sources = {r.solution.kernel.name: r.solution.source for r in results if r.solution is not None}
        if not any(isinstance(step, KernelStep) for step in merged):
            return self._without_gain(name, units, results, sources, report)
        plan = RegionPlan(name, region, merged, kernel_graph(name, region, merged))
        timing, reason = yield from self._timed(plan, sources, results)
        status = "improved" if (timing.speedup or 0) > 1 and reason is None else "no-gain"
        if status == "no-gain" and reason is None:
            reason = "the kernel is not faster than PyTorch here, beyond what measuring can tell"
        return RegionResult(region, status, reason, plan, sources, tuple(results), timing, report)

    def _solved(self, unit: LaxPiece, place: Place) -> Generator[Event, None, PieceResult]:
        """From the store, or solved and stored."""
        measuring = self.tools.measurer is not None
        key = region_key(
            unit.program,
            self.tools.target,
            device=self.device.name if measuring else "",
            driver=(self.device.driver or "") if measuring else "",
            space=f"{SPACE}; {self.options.budget_s:g} s",
        )
        document = self.store.get(key) if self.store is not None else None
        if document is not None:
            known = recall(document, unit, place.name, self.tools.target)
            if known is not None:
                return known
        found = yield from solve(unit, place, self.tools, self.options.budget_s, self.cancelled)
        if self.store is not None and not self.cancelled():
            self.store.put(key, remember(found))
        return found

    def _pays(self, solution: Solution) -> bool:
        """Worth a place in the plan. With a GPU the whole region is measured later and decides for itself."""
        return self.tools.measurer is not None or solution.estimate_us < solution.library_us

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
                steps.append(KernelStep(unit, solution.kernel, solution.verdict))
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
            used = use_all or self._pays(result.solution)
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
        yield Working(self.number, f"measuring {plan.name} against eager, torch.compile and max-autotune")
        text = module_text([plan], sources, original_path=self.path, target=self.tools.target)
        ours = Subject("mugraph", text, on_tensors(plan))
        eager = Subject("eager", text, f"_{plan.name}_reference")
        measured = against_peers(ours, eager, specs, measurer)
        return _timing(measured), measured.reason


def _timing(measured: Measurement) -> Timing:
    best = measured.peers[measured.best_peer] if measured.best_peer else None
    speedup = measured.speedup if measured.us is not None and best is not None else None
    return Timing(best, measured.us, speedup, measured.peers, "measured", measured.device, measured.method)


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
    scales: dict[int, float] = {}
    for step in plan.steps:
        if isinstance(step, KernelStep):
            names = list(step.piece.inputs)
            for name, spec in zip(names, input_specs(step.piece.program, names), strict=True):
                value = step.piece.inputs[name]
                scales[value] = min(scales.get(value, 1.0), spec.scale)
    specs: list[InputSpec] = []
    for live in plan.region.live_ins:
        info = plan.region.values[live.value]
        if info.dtype not in ("f16", "bf16", "f32"):
            return None
        specs.append(InputSpec(info.shape, info.strides, info.dtype, scales.get(live.value, 1.0)))
    return tuple(specs)
