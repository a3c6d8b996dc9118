"""`python -m mugraph.research.early [NAME ...] [--json FILE]`, on a GPU: what it gains to start a kernel while the one
before it ends (codegen/early.py), for chains of small kernels, replayed as a CUDA graph and as called.

Each program is searched without measuring, so that its kernels are those of the cost model. Then its plan is timed in
one interleaved run: its kernels one after the other ("none"); each waits before it touches memory ("waiting"); loads
first what is there already ("loading"); and asks for the first tiles of its weights ("asking").
"""

from __future__ import annotations

import argparse
import sys
import tempfile
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path

import msgspec

from mugraph.codegen.early import Form
from mugraph.edit.module.entry import on_tensors
from mugraph.edit.module.file import module_text
from mugraph.events import Done, RegionResult
from mugraph.ir.kernel import KernelSource
from mugraph.options import Options
from mugraph.pipeline import run
from mugraph.plans.plan import RegionPlan
from mugraph.research.chains import PROGRAMS
from mugraph.research.on_device import OnDevice, is_right, small_inputs
from mugraph.solve.ahead import kernels_of_module
from mugraph.solve.overlapping import early_sources
from mugraph.store import Store
from mugraph.targets import Target
from mugraph.tune.compile_pool import CompilePool
from mugraph.tune.device import detect, resolve
from mugraph.tune.measure import CALLED, METHOD, Measurer, Results
from mugraph.tune.messages import Subject
from mugraph.tune.statistics import Summary

BUDGET_S = 3.0
NONE = "none"
FORMS: tuple[Form, ...] = ("waiting", "loading", "asking")


class Row(msgspec.Struct):
    """One program. kernels: that are launched; early: of these, before the one before has ended. Microseconds of a call
    by how its kernels are launched, None where that could not be run; right: whether the results are the code's."""

    program: str
    kernels: int
    early: int
    device_us: dict[str, float | None]
    called_us: dict[str, float | None]
    right: dict[str, bool]


class Found(OnDevice, kw_only=True):
    rows: list[Row]


@dataclass(frozen=True)
class Chain:
    """A program's plan, with its kernels in each form."""

    name: str
    plan: RegionPlan
    ways: Mapping[str, Mapping[str, KernelSource]]
    texts: Mapping[str, str]

    @property
    def subjects(self) -> list[Subject]:
        return [Subject(way, text, on_tensors(self.plan)) for way, text in self.texts.items()]


def chain(name: str, folder: Path, target: Target, budget_s: float = BUDGET_S) -> Chain:
    """Raises ValueError where nothing is found."""
    path = folder / f"{name}.py"
    path.write_text(PROGRAMS[name], encoding="utf-8")
    result = searched(path, target, budget_s)
    plan = result.plan
    if plan is None:
        raise ValueError(f"{name}: no kernel was found ({result.reason})")
    ways: dict[str, Mapping[str, KernelSource]] = {NONE: result.sources}
    ways |= {form: early_sources(plan, result.sources, form) for form in FORMS}
    texts = {
        way: module_text([plan], sources, original_path=path, target=target, alone=True)
        for way, sources in ways.items()
    }
    return Chain(name, plan, ways, texts)


def searched(path: Path, target: Target, budget_s: float) -> RegionResult:
    """The first region of a file for which there is a plan, by the cost model. Raises ValueError."""
    options = Options(target=target.name, budget_s=budget_s, measure=False)
    with Store.open() as store:
        result = next(event.result for event in run(path, None, options, store=store) if isinstance(event, Done))
    found = [region for region in result.regions if region.plan is not None] or list(result.regions)
    if not found:
        raise ValueError(f"{path.stem}: there is no region ({'; '.join(result.errors)})")
    return found[0]


def measured(found: Chain, measurer: Measurer, pool: CompilePool) -> Row:
    subjects = found.subjects
    for one in subjects:
        pool.ask([*kernels_of_module(one.source, found.ways[one.name].values())])
    for one in subjects:
        pool.compile([*kernels_of_module(one.source, found.ways[one.name].values())])
    right = {one.name: is_right(one, found.plan, measurer) for one in subjects}
    times = measurer.compare_called(subjects, small_inputs(found.plan), "", None)
    kernels = [kernel for source in found.ways[FORMS[0]].values() for kernel in source.kernels]
    return Row(
        found.name,
        len(kernels),
        sum(kernel.early for kernel in kernels),
        medians(times.device),
        medians(times.called),
        right,
    )


def medians(results: Results) -> dict[str, float | None]:
    return {name: one.median_us if isinstance(one, Summary) else None for name, one in results.items()}


def table(rows: Sequence[Row]) -> str:
    """As text: microseconds on the device, then as called."""
    ways = (NONE, *FORMS)
    head = ["program", "kernels", "early", *ways, *(f"{way}, called" for way in ways), "right"]
    lines = [head]
    for row in rows:
        times = [us.get(way) for us in (row.device_us, row.called_us) for way in ways]
        said = ["" if us is None else f"{us:.1f}" for us in times]
        lines.append([row.program, str(row.kernels), str(row.early), *said, "yes" if all(row.right.values()) else "NO"])
    widths = [max(len(line[at]) for line in lines) for at in range(len(head))]
    return "\n".join("  ".join(cell.ljust(width) for cell, width in zip(line, widths, strict=True)) for line in lines)


def main(arguments: Sequence[str]) -> int:
    """Exit status."""
    parser = argparse.ArgumentParser(prog="python -m mugraph.research.early")
    parser.add_argument("names", nargs="*", metavar="NAME", help=", ".join(PROGRAMS))
    parser.add_argument("--json", type=Path, metavar="FILE")
    parser.add_argument("--seconds", type=float, default=BUDGET_S, help="of search for a program")
    given = parser.parse_args(arguments)
    if unknown := set(given.names) - PROGRAMS.keys():
        parser.error(f"no program is called {', '.join(sorted(unknown))}")
    device = detect()
    if device.kind != "gpu" or not device.target.launches_early:
        print(f"{device.name}: no GPU here that can start a kernel while the one before it ends", file=sys.stderr)
        return 1
    target, rows = resolve("auto", device), list[Row]()
    with tempfile.TemporaryDirectory() as folder, Measurer() as measurer, CompilePool() as pool:
        measurer.begin()
        pool.begin()
        for name in given.names or PROGRAMS:
            try:
                rows.append(measured(chain(name, Path(folder), target, given.seconds), measurer, pool))
            except ValueError as error:
                print(error, file=sys.stderr)
        hello = measurer.hello()
    found = Found(device=hello.device, versions=hello.versions, device_method=METHOD, called_method=CALLED, rows=rows)
    print(f"{found.device}, {', '.join(f'{name} {version}' for name, version in found.versions.items())}; microseconds")
    print(table(rows))
    if given.json is not None:
        given.json.write_bytes(msgspec.json.format(msgspec.json.encode(found), indent=1) + b"\n")
    return 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
