"""`python -m mugraph.research.launching [NAME ...]`: what it costs to ask a guard and to launch a region's kernels, in
microseconds of the host's time, beside one of PyTorch's own operators in the same process. Without a GPU: guards alone.
"""

from __future__ import annotations

import importlib.util
import inspect
import statistics
import sys
import tempfile
import time
from collections.abc import Callable, Sequence
from importlib import metadata
from pathlib import Path
from types import ModuleType

import torch

from mugraph.edit.apply import apply_files
from mugraph.edit.module.entry import arguments
from mugraph.events import Done
from mugraph.ir.mugraph import GraphKernel
from mugraph.pipeline import Options, run
from mugraph.plans.plan import KernelStep, RegionPlan
from mugraph.research.launched import PROGRAMS
from mugraph.store import Store
from mugraph.tune.device import detect, resolve

BUDGET_S = 4.0
CALLS, BATCHES = 50, 40
HEAD = ("program", "kernels", "torch.add", "guard", "launch", "both", "call", "original", "launch by Triton")


def host_us(function: Callable[[], object]) -> float:
    """Median over batches of the time until a call returns; the device is waited for between batches."""
    for _ in range(CALLS):
        function()
    times: list[float] = []
    for _ in range(BATCHES):
        if torch.cuda.is_available():
            torch.cuda.synchronize()
        begin = time.perf_counter()
        for _ in range(CALLS):
            function()
        times.append((time.perf_counter() - begin) / CALLS * 1e6)
    return statistics.median(times)


def imported(path: Path, name: str) -> ModuleType:
    spec = importlib.util.spec_from_file_location(name, path)
    assert spec is not None
    assert spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    sys.modules[name] = module
    spec.loader.exec_module(module)
    return module


def applied(path: Path, target: str) -> tuple[RegionPlan, ...]:
    """The file's regions with their kernels written in, whether or not they are expected to be faster."""
    options = Options(target=target, budget_s=BUDGET_S, measure=False)
    with Store.open() as store:
        result = next(event.result for event in run(path, None, options, store=store) if isinstance(event, Done))
    plans = tuple(region.plan for region in result.regions if region.plan is not None)
    if not plans:
        raise SystemExit(f"{path.stem}: no kernel was found ({[region.reason for region in result.regions]})")
    sources = {name: source for region in result.regions for name, source in region.sources.items()}
    apply_files(path, plans, sources, target=resolve(target, detect()))
    return plans


def row(name: str, folder: Path, device: str) -> list[str]:
    """The measured line of one program."""
    edited, before = folder / f"{name}.py", folder / f"{name}_before.py"
    for path in (edited, before):
        path.write_text(PROGRAMS[name])
    [plan] = applied(edited, "auto" if device == "cuda" else "h100")
    sys.path.insert(0, str(folder))
    kernels = imported(folder / f"{name}_mugraph.py", f"{name}_mugraph")
    ours, original = imported(edited, name), imported(before, f"{name}_before")
    if device == "cpu":  # the guard is asked as if the CPU were the device
        vars(kernels).update(_tested_gpu=lambda kind, index: True)  # pyright: ignore[reportUnknownLambdaType]
    with torch.device(device):
        (call, given), (plain, same) = ours.made(), original.made()
    function = call.forward if isinstance(call, torch.nn.Module) else call
    named = dict(zip(inspect.signature(function).parameters, given, strict=True)) | {"self": call}
    asks = [named[name] for name in arguments(plan)]
    fits, replaced = getattr(kernels, f"{plan.name}_fits"), getattr(kernels, plan.name)
    if not fits(*asks):
        raise SystemExit(f"{name}: its guard says no")
    one, other = torch.ones(16, device=device), torch.ones(16, device=device)
    steps = [step for step in plan.steps if isinstance(step, KernelStep)]
    launches = sum(isinstance(kernel, GraphKernel) for step in steps for kernel in step.kernels)
    asked = host_us(lambda: fits(*asks))
    figures: list[float | None] = [host_us(lambda: torch.add(one, other)), asked]
    if device == "cuda":
        launched = host_us(lambda: replaced(*asks))
        figures += [launched, asked + launched, host_us(lambda: call(*given)), host_us(lambda: plain(*same))]
        vars(kernels).update(_unwatched=lambda jit: False)  # pyright: ignore[reportUnknownLambdaType]
        figures.append(host_us(lambda: replaced(*asks)))
    else:
        figures += [None] * 5
    return [name, str(launches), *("" if figure is None else f"{figure:.1f}" for figure in figures)]


def table(rows: Sequence[Sequence[str]]) -> str:
    first, *widths = [max(len(line[at]) for line in (HEAD, *rows)) for at in range(len(HEAD))]
    lines = [[line[0].ljust(first), *map(str.rjust, line[1:], widths)] for line in (HEAD, *rows)]
    return "\n".join("  ".join(line).rstrip() for line in lines)


def main(names: Sequence[str]) -> None:
    device = "cuda" if torch.cuda.is_available() else "cpu"
    unknown = sorted(set(names) - PROGRAMS.keys())
    if unknown:
        raise SystemExit(f"{', '.join(unknown)}: there are {', '.join(PROGRAMS)}")
    rows: list[list[str]] = []
    with tempfile.TemporaryDirectory(prefix="mugraph-launching-") as folder, torch.no_grad():
        for name in names or PROGRAMS:
            rows.append(row(name, Path(folder), device))
            print(table([rows[-1]]).splitlines()[-1], file=sys.stderr, flush=True)
    place = torch.cuda.get_device_name() if device == "cuda" else "no GPU: guards alone"
    print(f"{place}, torch {metadata.version('torch')}; microseconds of the host's time, medians")
    print(table(rows))


if __name__ == "__main__":
    main(sys.argv[1:])
