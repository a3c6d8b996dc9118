"""Samples: what is found in them, and the files with their kernels applied."""

from __future__ import annotations

import atexit
import importlib.util
import inspect
import shutil
import sys
import tempfile
from collections.abc import Callable
from dataclasses import dataclass, replace
from pathlib import Path
from types import ModuleType

import torch
from mugraph.edit.apply import apply_files
from mugraph.edit.module.entry import tensors_fit
from mugraph.events import Done, FileResult
from mugraph.ir.mugraph import GraphKernel
from mugraph.pipeline import Options, run_trace
from mugraph.plans.plan import KernelStep, RegionPlan
from mugraph.store import Store
from mugraph.trace.tracer import trace_file
from mugraph.tune.device import detect, resolve
from torch import nn

from tests.samples.declared import SAMPLES, arguments, declarations
from tests.support.clock import FILE_S

FILES = sorted(SAMPLES.glob("*.py"))


@dataclass(frozen=True)
class AppliedSample:
    """original, edited, kernels: the sample as it was, with the kernels applied, and the kernel module."""

    path: Path
    before: bytes
    plans: tuple[RegionPlan, ...]
    original: ModuleType
    edited: ModuleType
    kernels: ModuleType


@dataclass(frozen=True)
class Target:
    """One function or module of a sample that has a region. make: its callable in a given version of the file.

    parameters: of the callable, by name, at the declared shapes (without memory)
    """

    name: str
    plan: RegionPlan
    parameters: dict[str, torch.Tensor]

    @property
    def kernel_names(self) -> list[str]:
        """Of each operator: the kernel it launches, or the first of several."""
        return [step.kernel.name for step in self.plan.steps if isinstance(step, KernelStep)]

    @property
    def launches(self) -> int:
        """Generated kernels launched in one call; a library's, which a kernel graph may have too, are not ours."""
        steps = [step for step in self.plan.steps if isinstance(step, KernelStep)]
        return sum(isinstance(kernel, GraphKernel) for step in steps for kernel in step.kernels)

    def make(self, module: ModuleType, shrink: Callable[[int], int] = lambda size: size) -> Callable[..., torch.Tensor]:
        made = getattr(module, self.name)
        if not isinstance(made, type):
            return made
        assert issubclass(made, nn.Module)
        if hasattr(module, "get_init_inputs"):
            return made(*(shrink(value) for value in module.get_init_inputs())).eval()
        if hasattr(module, "Config"):
            config = module.Config()
            sizes = {name: shrink(value) for name, value in vars(config).items() if type(value) is int}
            return made(replace(config, **sizes)).eval()
        defaults = {name: p.default for name, p in inspect.signature(made).parameters.items()}
        return made(**{name: shrink(value) for name, value in defaults.items() if type(value) is int}).eval()


def found(path: Path, target: str, budget_s: float, store: Store | None = None, most: int | None = None) -> FileResult:
    """What a search finds in a sample; nothing is measured.

    most: of a file with many sizes of one function, so many of the first regions and of the last
    """
    options = Options(target=target, budget_s=budget_s, file_budget_s=FILE_S, measure=False)
    trace = trace_file(path)
    if most is not None:
        trace = replace(trace, regions=(*trace.regions[:most], *trace.regions[most:][-most:]))
    device = detect()
    events = run_trace(trace, device, resolve(target, device), options, store)
    result = next(event.result for event in events if isinstance(event, Done))
    assert result.errors == (), result.errors
    return result


def applied(result: FileResult, target: str, folder: Path | None = None, most: int = 2) -> AppliedSample:
    """Every region for which kernels were found is applied, whether or not they are expected to be faster; of a file
    with many sizes of one function, the first and the last few.

    folder: where the edited copy and its kernels go; None: to a temporary folder that goes when the process ends
    """
    path = Path(result.path)
    folder = folder or _temporary()
    copy = folder / path.name
    shutil.copyfile(path, copy)
    regions = [*result.regions[:most], *result.regions[most:][-most:]]
    assert [region.reason for region in regions if region.status == "failed"] == []
    plans = tuple(region.plan for region in regions if region.plan is not None)
    sources = {name: source for region in regions for name, source in region.sources.items()}
    written = apply_files(copy, plans, sources, target=resolve(target, detect()))
    edited = _begun(copy, f"applied_{path.stem}")  # the file is there when it imports its kernels
    kernels = _imported(written.module, written.module.stem)  # by the name under which the edited file imports it
    _finish(edited)
    return AppliedSample(copy, path.read_bytes(), plans, _imported(path, f"original_{path.stem}"), edited, kernels)


def _temporary() -> Path:
    folder = Path(tempfile.mkdtemp(prefix="mugraph-applied-"))
    atexit.register(shutil.rmtree, folder, ignore_errors=True)
    return folder


def _imported(path: Path, name: str) -> ModuleType:
    module = _begun(path, name)
    _finish(module)
    return module


def _begun(path: Path, name: str) -> ModuleType:
    spec = importlib.util.spec_from_file_location(name, path)
    assert spec is not None
    assert spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    sys.modules[name] = module
    return module


def _finish(module: ModuleType) -> None:
    assert module.__spec__ is not None
    assert module.__spec__.loader is not None
    module.__spec__.loader.exec_module(module)


def targets(sample: AppliedSample) -> list[Target]:
    """What of the sample can be called by itself: declared functions and modules that hold a region."""
    plans = {plan.region.function.removesuffix(".forward"): plan for plan in sample.plans}
    found: list[Target] = []
    with torch.device("meta"):
        for name, comment in declarations(sample.path):
            if name in plans:
                given = arguments(getattr(sample.original, name), comment)
                found.append(Target(name, plans[name], given))
        if "Model" in plans and hasattr(sample.original, "get_inputs"):
            names = list(inspect.signature(sample.original.Model.forward).parameters)[1:]
            found.append(Target("Model", plans["Model"], dict(zip(names, sample.original.get_inputs(), strict=True))))
    return found


def fits(
    sample: AppliedSample, target: Target, function: Callable[..., torch.Tensor], given: dict[str, torch.Tensor]
) -> bool:
    """What the kernel module says of the region's tensors, which a region that starts later than its function or
    reads parameters has under other names."""
    said: list[bool] = []
    name = tensors_fit(target.plan)
    asked = getattr(sample.kernels, name)

    def listening(*tensors: torch.Tensor) -> bool:
        said.append(asked(*tensors))
        return False

    setattr(sample.kernels, name, listening)
    try:
        function(**given)
    finally:
        setattr(sample.kernels, name, asked)
    return bool(said) and all(said)
