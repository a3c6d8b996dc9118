"""`mugraph bench [NAMES]`: the samples against eager PyTorch, torch.compile and max-autotune."""

from __future__ import annotations

import time
from collections.abc import Sequence
from math import prod
from pathlib import Path
from typing import cast

from rich.console import Console
from rich.table import Table

from mugraph.commands.common import FAILED, OK, WrongUsage, print_json, say_error
from mugraph.events import Done, FileResult, RegionResult, Traced
from mugraph.executors.choose import choose
from mugraph.executors.executor import CannotExecute
from mugraph.ir.dtypes import itemsize
from mugraph.ir.text import format_launch
from mugraph.pipeline import Options, run
from mugraph.reports.document import called_document, device_document, finite
from mugraph.reports.progress import ProgressView
from mugraph.reports.text import model_name
from mugraph.store.keys import versions
from mugraph.targets import Target
from mugraph.tune.against import PEERS
from mugraph.tune.device import Device, detect, resolve
from mugraph.units.ranged import region_at

Json = dict[str, object]
_ESTIMATED = "estimated only: not measured here"


def bench(names: Sequence[str], folder: Path, options: Options, *, as_json: bool) -> int:
    """Exit status: 1 when a sample failed. Every region of a sample is one workload. Raises WrongUsage.

    Nothing is taken from the store: a benchmark measures now. Where there is no GPU each workload says that its times
    are estimates, and its speedup is the estimate's.
    """
    files = chosen(names, folder)
    try:
        choose(options.executor).close()  # said at once, not after the first trace
    except CannotExecute as error:
        raise WrongUsage(str(error)) from None
    device = detect()
    target = resolve("auto", device)
    workloads: list[Json] = []
    failed = False
    with ProgressView(Console(stderr=True), False) as view:
        for file in files:
            began = time.monotonic()
            result: FileResult | None = None
            for event in run(file, None, options):
                view.show(event)
                if isinstance(event, Traced):
                    for notice in event.trace.notices:
                        say_error(notice)
                if isinstance(event, Done):
                    result = event.result
            assert result is not None
            for error in result.errors:
                say_error(error)
            failed |= bool(result.errors) or any(region.status == "failed" for region in result.regions)
            spent = time.monotonic() - began
            searched = [region for region in result.regions if region.units]
            workloads += [workload(file.stem, region, target, spent / len(searched)) for region in searched]
    document: Json = {"device": device_document(device), "versions": versions(), "workloads": workloads}
    if as_json:
        print_json(document)
    else:
        _print(workloads, device)
    return FAILED if failed else OK


def chosen(names: Sequence[str], folder: Path) -> list[Path]:
    """The samples' files, all or those named. Raises WrongUsage."""
    files = {file.stem: file for file in sorted(folder.glob("*.py")) if not file.stem.endswith("_mugraph")}
    if not files:
        raise WrongUsage(f"there are no samples in {folder}; say where they are with --samples")
    unknown = [name for name in names if name not in files]
    if unknown:
        raise WrongUsage(f"no sample is called {', '.join(unknown)}; there are {', '.join(files)}")
    return [files[name] for name in names] if names else list(files.values())


def workload(file: str, result: RegionResult, target: Target, spent_s: float) -> Json:
    """One region; with a size in a range, at the one that its figures are of. spent_s: seconds of the file's whole run
    that are this region's share."""
    timing = result.timing
    measured = timing.source == "measured"
    best = timing.best_peer
    gain = timing.best_speedup if timing.best_speedup is not None else timing.speedup
    status = result.status if measured or timing.optimized_us is None else f"{result.status} ({_ESTIMATED})"
    search_s = result.search.total_s
    return {
        "name": f"{file}:{result.region.function}" + (f" at {_size(result)}" if timing.at is not None else ""),
        "status": status,
        "floor_us": floor_us(result, target),
        "peers_us": dict(timing.peers_us) if measured else {},
        "estimates_us": {} if measured else dict(timing.peers_us),
        "best_peer": best if measured or best is None else f"{best} (estimated)",
        "best_peer_us": finite(timing.peers_us.get(best, timing.baseline_us) if best is not None else None),
        "optimized_us": finite(timing.optimized_us),
        "speedup": (gain or 1.0) if result.status == "improved" else 1.0,
        "code_us": finite(timing.baseline_us),
        "code_speedup": finite(timing.speedup),
        "as_called": called_document(timing),
        "search_s": search_s,
        "tune_s": max(0.0, spent_s - search_s) if measured else 0.0,
        "spent_s": dict(result.spent_s),
        "kernels": [format_launch(kernel) for kernel in result.plan.mugraph.kernels] if result.plan is not None else [],
    }


def _size(result: RegionResult) -> str:
    name = result.region.dynamic.range.name if result.region.dynamic is not None else "size"
    return f"{name} = {result.timing.at}"


def floor_us(result: RegionResult, target: Target) -> float:
    """Microseconds the region's inputs and outputs take to cross the device's memory bus once."""
    at = result.timing.at
    values = (result.region if at is None else region_at(result.region, at)).values
    crossing = {live.value for live in (*result.region.live_ins, *result.region.live_outs)}
    moved = sum(prod(values[value].shape) * itemsize(values[value].dtype) for value in crossing)
    return moved / target.bandwidth


def _print(workloads: Sequence[Json], device: Device) -> None:
    """Times that were not measured have a ~ before them, and the title says so."""
    measured = device.kind == "gpu"
    note = (
        device.name if measured else f"no GPU: ~ marks estimates of the cost model for {model_name(device.target.name)}"
    )
    table = Table(title=f"microseconds ({note})", title_justify="left")
    known = tuple(PEERS) if measured else ("eager", "torch.compile")
    columns = ("floor", *known, "mugraph", "speedup", *(("called", "code called") if measured else ()))
    table.add_column("workload", no_wrap=True)
    for heading in columns:
        table.add_column(heading, justify="right", no_wrap=True)
    table.add_column("status", no_wrap=True)
    for one in workloads:
        mark = "" if measured else "~"
        peers = cast("dict[str, float]", one["peers_us" if measured else "estimates_us"])
        before = [peers.get(name) for name in known]
        called = cast("dict[str, float | None]", one["as_called"] or {})
        host = [called.get("optimized_us"), called.get("baseline_us")] if measured else []
        times = [_us(value, mark) for value in (*before, one["optimized_us"], one["speedup"], *host)]
        status = str(one["status"]).partition(" (")[0]
        table.add_row(str(one["name"]), _us(one["floor_us"], ""), *times, status)
    Console(width=max(Console().width, 100)).print(table)


def _us(value: object, mark: str) -> str:
    return f"{mark}{value:.2f}" if isinstance(value, float) else "-"
