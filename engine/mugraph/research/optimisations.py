"""`python -m mugraph.research.optimisations [FILE:NAME ...] [--json FILE] [--target NAME] [--seconds S]`: what Mirage's
optimisations of a verified μGraph (§6) are worth, each left out by itself, as in the paper's Figure 12.

By default the two programs are those of the samples, at batch size one: grouped-query attention and attention with
normalised queries and keys. Each program is optimised once with everything, and once without each optimisation; what is
found is timed in one interleaved run on a GPU. Without one, times are estimates of the cost model, which these leave
as they are; whether the text of the kernels changes, and what a call holds of memory, is no estimate.

"threads" changes no kernel here: Triton fuses operators by itself, and thread graphs say what it does.
"""

from __future__ import annotations

import argparse
import contextlib
import sys
from collections.abc import Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import get_args

import msgspec

from mugraph.edit.module.entry import on_tensors
from mugraph.edit.module.file import module_text
from mugraph.events import Done, RegionResult
from mugraph.options import Options
from mugraph.pipeline import run, working
from mugraph.plans.plan import RegionPlan
from mugraph.protocol.settings import Optimisation
from mugraph.research.held_memory import MIB, held_by_kernels
from mugraph.research.on_device import OnDevice
from mugraph.solve.ahead import kernels_of_module
from mugraph.solve.tools import Tools
from mugraph.store import Store
from mugraph.store.keys import versions
from mugraph.tune.compile_pool import CompilePool
from mugraph.tune.device import UnknownTarget, detect, resolve
from mugraph.tune.measure import CALLED, METHOD, Measurer, Results
from mugraph.tune.messages import InputSpec, Subject
from mugraph.tune.statistics import Summary

SAMPLES = Path(__file__).parents[3] / "samples"
PROGRAMS = "gqa_attention.py:gqa_attention", "qknorm_attention.py:qknorm_attention"
ALL = ""
OF_PLANS = frozenset({"threads", "memory"})
"""What changes nothing before a plan is made: the plan with everything is taken."""
SECONDS = 20.0


class Row(msgspec.Struct):
    """without: what is left out, "" for nothing. kernels: launched by a call. Microseconds: estimated by the cost
    model; measured on the device and as called, None where nothing was. held: bytes of a call beside its inputs, at
    most. same_kernels: whether their text is that of the program with everything"""

    program: str
    without: str
    kernels: int
    estimated_us: float | None
    device_us: float | None
    called_us: float | None
    held: int
    same_kernels: bool


class Found(OnDevice, kw_only=True):
    """measured: whether the device was; else estimates are for it"""

    measured: bool
    rows: list[Row]


@dataclass(frozen=True)
class Variant:
    """A program as it is found without some optimisations."""

    without: str
    path: Path
    plan: RegionPlan
    result: RegionResult

    @property
    def text(self) -> str:
        return module_text([self.plan], self.result.sources, original_path=self.path, alone=True)

    @property
    def kernels(self) -> list[str]:
        return [kernel.jit for source in self.result.sources.values() for kernel in source.kernels]


def variants(
    path: Path, name: str, options: Options, store: Store | None = None, tools: Tools | None = None
) -> list[Variant]:
    """With everything, then without each. Raises ValueError where no kernel is found."""
    found: list[Variant] = []
    for without in (ALL, *get_args(Optimisation)):
        if without in OF_PLANS:
            usual = found[0]
            found.append(replace(usual, without=without, plan=replace(usual.plan, without=frozenset({without}))))
            continue
        chosen = replace(options, without=without)
        done = next(
            event.result for event in run(path, name, chosen, store=store, tools=tools) if isinstance(event, Done)
        )
        results = [one for one in done.regions if one.plan is not None]
        if not results or results[0].plan is None:
            why = "; ".join([*done.errors, *(one.reason or "" for one in done.regions)]) or "there is no region"
            raise ValueError(f"{path.name}:{name}: no kernel was found ({why})")
        found.append(Variant(without, path, results[0].plan, results[0]))
    return found


def rows_of(
    found: Sequence[Variant], name: str, measurer: Measurer | None = None, pool: CompilePool | None = None
) -> list[Row]:
    """Timed beside one another, where there is a device to do so."""
    device, called = _times(found, measurer, pool) if measurer is not None else ({}, {})
    usual = found[0]
    return [
        Row(
            name,
            one.without,
            len(one.kernels),
            one.result.timing.optimized_us if one.result.timing.source == "estimated" else None,
            device.get(one.without),
            called.get(one.without),
            held_by_kernels(one.path, one.plan, one.result.sources),
            one.kernels == usual.kernels,
        )
        for one in found
    ]


def _times(
    found: Sequence[Variant], measurer: Measurer, pool: CompilePool | None
) -> tuple[dict[str, float | None], dict[str, float | None]]:
    """Medians in microseconds, on the device and as called."""
    subjects = [Subject(one.without or "all", one.text, on_tensors(one.plan)) for one in found]
    for one, subject in zip(found, subjects, strict=True):
        if pool is not None:
            pool.compile([*kernels_of_module(subject.source, one.result.sources.values())])
    values = [found[0].plan.region.values[live.value] for live in found[0].plan.region.live_ins]
    specs = tuple(InputSpec(one.shape, one.strides, one.dtype, 1.0) for one in values)
    times = measurer.compare_called(subjects, specs, "", None)
    return _medians(times.device), _medians(times.called)


def _medians(results: Results) -> dict[str, float | None]:
    medians = {name: one.median_us if isinstance(one, Summary) else None for name, one in results.items()}
    return {ALL if name == "all" else name: us for name, us in medians.items()}


def table(rows: Sequence[Row]) -> str:
    lines = [["program", "without", "kernels", "µs", "µs, called", "times", "MiB held", "kernels' text"]]
    for row in rows:
        first = next(one for one in rows if one.program == row.program)
        us, of = (row.device_us, first.device_us) if first.device_us else (row.estimated_us, first.estimated_us)
        lines.append(
            [
                row.program,
                row.without or "nothing",
                str(row.kernels),
                f"{us:.2f}" if us else "-",
                f"{row.called_us:.2f}" if row.called_us else "-",
                f"{us / of:.3f}" if us and of else "-",
                f"{row.held / MIB:.3f}",
                "the same" if row.same_kernels else "another",
            ]
        )
    widths = [max(len(line[at]) for line in lines) for at in range(len(lines[0]))]
    return "\n".join("  ".join(cell.ljust(width) for cell, width in zip(line, widths, strict=True)) for line in lines)


def main(arguments: Sequence[str]) -> int:
    """Exit status."""
    parser = argparse.ArgumentParser(prog="python -m mugraph.research.optimisations")
    parser.add_argument("programs", nargs="*", metavar="FILE:NAME", help="by default two of the samples")
    parser.add_argument("--json", type=Path, metavar="FILE")
    parser.add_argument("--target", default="auto", help="that estimates are for, where nothing is measured")
    parser.add_argument("--seconds", type=float, default=SECONDS, help="of search for a program")
    given = parser.parse_args(arguments)
    programs = given.programs or [str(SAMPLES / one) for one in PROGRAMS]
    paths = [(Path(file), name) for file, _, name in (one.rpartition(":") for one in programs)]
    if wrong := [f"{path}:{name}" for path, name in paths if not path.is_file()]:
        parser.error(f"there is no file of {', '.join(wrong)}; a program is named FILE:NAME")
    here = detect()
    try:
        target = resolve(given.target, here)
    except UnknownTarget as error:
        parser.error(str(error))
    measured = here.kind == "gpu" and given.target == "auto"
    options = Options(target=target.name, budget_s=given.seconds, file_budget_s=10 * given.seconds, measure=measured)
    rows: list[Row] = []
    with contextlib.ExitStack() as stack:
        store = stack.enter_context(Store.open())
        tools = stack.enter_context(working(here, target, options))
        measurer = stack.enter_context(Measurer()) if measured else None
        pool = stack.enter_context(CompilePool()) if measured else None
        if measurer is not None and pool is not None:
            measurer.begin()
            pool.begin()
        for path, name in paths:
            try:
                rows += rows_of(
                    variants(path.resolve(), name, options, store, tools), f"{path.stem}:{name}", measurer, pool
                )
            except ValueError as error:
                print(error, file=sys.stderr)
        hello = measurer.hello() if measurer is not None else None
    if not rows:
        return 1
    device = hello.device if hello is not None else target.name
    found = Found(
        device=device,
        measured=measured,
        versions=hello.versions if hello is not None else versions(),
        device_method=METHOD,
        called_method=CALLED,
        rows=rows,
    )
    print(f"measured on {device}" if measured else f"no GPU is used: times are estimates for {device}")
    print(table(rows))
    if given.json is not None:
        given.json.write_bytes(msgspec.json.format(msgspec.json.encode(found), indent=1) + b"\n")
    return 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
