"""`python -m mugraph.research.launching [NAME ...]`: what it costs to ask a guard and to launch a region's kernels, in
microseconds of the host's time, beside one of PyTorch's own operators in the same process. Without a GPU: guards alone.
"""

from __future__ import annotations

import contextlib
import importlib.util
import inspect
import statistics
import sys
import tempfile
import time
from collections.abc import Callable, Generator, Sequence
from importlib import metadata
from pathlib import Path
from types import ModuleType
from typing import Any

import torch

from mugraph.edit.apply import apply_files
from mugraph.edit.module.reads import arguments
from mugraph.events import Done
from mugraph.ir.mugraph import GraphKernel
from mugraph.pipeline import Options, run
from mugraph.plans.plan import KernelStep, RegionPlan
from mugraph.research.launched import PROGRAMS
from mugraph.store import Store
from mugraph.tune.device import detect, resolve

BUDGET_S = 4.0
CALLS, BATCHES = 50, 40
HEAD = (
    "program", "kernels", "torch.add", "guard", "launch", "both", "both/add", "call", "original",
    "call/add", "guard, Python", "launch, Python", "by Triton", "unprepared", "allocating", "kernels alone", "prepared",
)  # fmt: skip
"""both: guard and launch, one after the other; call: of the user's function. Python: without the part that is C.
unprepared: the launch without PyTorch's own launcher of compiled kernels. allocating: its outputs and scratch alone;
kernels alone: what PyTorch's launcher takes of it. prepared: of how many launches"""


def host_us(function: Callable[[], object]) -> float:
    """Median over batches of the time until a call returns; the device is waited for between batches."""
    [us] = beside_one_another(function)
    return us


def beside_one_another(*functions: Callable[[], object]) -> list[float]:
    """The same of several, in turns: what else the machine does falls on all of them."""
    times: list[list[float]] = [[] for _ in functions]
    for batch in range(BATCHES + 1):
        for function, taken in zip(functions, times, strict=True):
            if torch.cuda.is_available():
                torch.cuda.synchronize()
            begin = time.perf_counter()
            for _ in range(CALLS):
                function()
            if batch:  # the first warms up
                taken.append((time.perf_counter() - begin) / CALLS * 1e6)
    return [statistics.median(taken) for taken in times]


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
    if device == "cpu":
        kernels._make_native()  # as the first launch does on a GPU

    guard, launch, both = straight(fits, replaced, asks)
    for _ in range(4 if device == "cuda" else 0):  # the first prepares, and what guards remember is asked anew
        both()

    def add() -> object:
        return torch.add(one, other)

    if device == "cuda":
        added, asked, launched, together, called = beside_one_another(add, guard, launch, both, lambda: call(*given))
        figures: list[float | None] = [added, asked, launched, together, together / added]
        figures += [called, host_us(lambda: plain(*same)), called / added]
        with in_python(kernels):
            figures += [host_us(guard), host_us(launch)]
            pieces = _pieces(kernels, launch)
        with patched(kernels, _unwatched=_no), _unprepared(kernels):
            figures.append(host_us(launch))
        with _unprepared(kernels):
            figures.append(host_us(launch))
        figures += pieces
    else:
        figures = [*beside_one_another(add, guard), *[None] * 6]
        with in_python(kernels):
            figures.append(host_us(guard))
        figures += [None] * 5
    said = ["" if figure is None else f"{figure:.1f}" for figure in figures]
    return [name, str(launches), *said, str(len(_operators(kernels)))]


def straight(
    fits: Callable[..., object], replaced: Callable[..., object], asks: Sequence[object]
) -> tuple[Callable[[], object], Callable[[], object], Callable[[], object]]:
    """The guard, the launch, and one after the other, called as the user's file calls them: without tuples of
    arguments."""
    names = ", ".join(f"one_{at}" for at in range(len(asks)))
    space: dict[str, Any] = {"fits": fits, "replaced": replaced, "asks": asks}
    lines = [
        "def made():",
        f"    {names}, = asks",
        f"    def both(): return replaced({names}) if fits({names}) else None",
        f"    return lambda: fits({names}), lambda: replaced({names}), both",
    ]
    exec("\n".join(lines), space)
    return space["made"]()


def _no(jit: object) -> bool:
    return False


def _operators(kernels: ModuleType) -> list[Any]:
    return [one for one in vars(kernels).values() if getattr(one, "prepared", None)]


@contextlib.contextmanager
def patched(module: ModuleType, **values: object) -> Generator[None]:
    before = {name: vars(module)[name] for name in values}
    vars(module).update(values)
    try:
        yield
    finally:
        vars(module).update(before)


@contextlib.contextmanager
def _unprepared(kernels: ModuleType) -> Generator[None]:
    """Launches as they are before they are prepared."""
    kept = [(one, dict(one.prepared), [*one.now]) for one in _operators(kernels)]
    for one, _, _ in kept:
        one.tried += [*one.prepared] * 9
        one.prepared.clear()
        one.now.clear()
    try:
        with patched(kernels, **_as_written(kernels)):
            yield
    finally:
        _restore(kept)


def _as_written(kernels: ModuleType) -> dict[str, Any]:
    """What regions of several steps are run by where nothing is written anew."""
    names = {f"_{region}_run": f"_{region}_on_tensors" for region in kernels._regions}
    return {run: vars(kernels)[function] for run, function in names.items()}


def _restore(kept: list[tuple[Any, dict[int, Any], list[Any]]]) -> None:
    for one, prepared, now in kept:
        one.prepared.update(prepared)
        one.now[:] = now


@contextlib.contextmanager
def in_python(kernels: ModuleType) -> Generator[None]:
    """Guards and launches without the part that is C."""
    known = {name: vars(kernels)[name] for name in ("_worlds", "_seen")}
    shortened = [one.native for of in known.values() for one in of.values()]
    before = [list(one) for one in shortened]
    unknown = {f"_{region}_known": kernels._unknown for region in kernels._PATHS}
    unknown |= {f"_{region}_{kept}": kernels._nothing for region in kernels._PATHS for kept in ("done", "given")}
    unknown |= _as_written(kernels)
    python: dict[str, Any] = {"_native": None, "_fitted_in_c": {}, "_make_native": _nothing, **unknown}
    with (
        patched(kernels, **{name: one for name, one in python.items() if name in vars(kernels)}),
        _prepared_anew(kernels),
    ):
        for one in shortened:
            one.clear()
        yield
    for one, kept in zip(shortened, before, strict=True):
        one[:] = kept


def _nothing() -> bool:
    return False


@contextlib.contextmanager
def _prepared_anew(kernels: ModuleType) -> Generator[None]:
    kept = [(one, dict(one.prepared), [*one.now]) for one in _operators(kernels)]
    for one, _, _ in kept:
        one.prepared.clear()
        one.tried.clear()
        one.now.clear()
    try:
        yield
    finally:
        _restore(kept)


def _pieces(kernels: ModuleType, call: Callable[[], object]) -> list[float | None]:
    """Of a call whose launches are prepared: its allocations alone, its kernels alone."""
    told: dict[str, list[tuple[Any, ...]]] = {"_launch": [], "_empty": []}
    changed: list[tuple[Any, Any]] = []
    call()  # prepares what is not
    for one in _operators(kernels):
        for function in one.prepared.values():
            defaults = function.__defaults__
            parameters = function.__code__.co_varnames[: function.__code__.co_argcount][-len(defaults) :]
            changed.append((function, defaults))
            function.__defaults__ = tuple(
                _noting(told[name], value) if name in told else value
                for name, value in zip(parameters, defaults, strict=True)
            )
    if not changed:
        return [None, None]
    kept = call()
    for function, defaults in changed:
        function.__defaults__ = defaults
    torch.cuda.synchronize()
    empty, launch = kernels._empty_on_gpu, kernels._launch_at
    made, launched = told["_empty"], told["_launch"]

    def allocating() -> None:
        for given in made:
            empty(*given)

    def kernels_alone() -> None:
        for given in launched:
            launch(*given)

    times: list[float | None] = [host_us(allocating), host_us(kernels_alone)]
    del kept
    return times


def _noting(told: list[tuple[Any, ...]], function: Callable[..., object]) -> Callable[..., object]:
    def noting(*given: Any) -> object:
        told.append(given)
        return function(*given)

    return noting


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
