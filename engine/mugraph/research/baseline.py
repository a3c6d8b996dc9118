"""Estimates of what PyTorch takes, against measured times.

    python -m mugraph.research.baseline compare [--search SECONDS [--plot SVG]] [FILES]   how far they are
    python -m mugraph.research.baseline fit [FILES]                          fit the rates again, and keep them
    python -m mugraph.research.baseline measure FILE [--seconds S]           on a GPU: measure the programs of
                                                                             `grid`, add them to FILE, fit again

FILES: points as `research.points` has them; without any, those kept with the engine. `compare --search` also searches
each program whose generated code was measured, and compares the speedups.
"""

from __future__ import annotations

import argparse
import sys
from collections.abc import Callable, Sequence
from pathlib import Path

import msgspec

from mugraph.baseline.rates import FILE, Fitted, Rates, fitted
from mugraph.events import RegionDone
from mugraph.ir.region import Trace
from mugraph.options import Options
from mugraph.pipeline import run_trace
from mugraph.research.fitting import ESTIMATED, Sample, agreement, fit
from mugraph.research.points import OURS, kept, read, traced
from mugraph.research.scatter import scatter
from mugraph.search.schedules.cost import estimate_library_us
from mugraph.solve.search_unit import SearchUnit
from mugraph.targets import TARGETS
from mugraph.tune.device import detect
from mugraph.units.region_units import cut_region

Pairs = list[tuple[float, float]]
FOLDS = 5


def samples_of(files: Sequence[Path]) -> list[Sample]:
    """Those that tracing finds a region in. Raises OSError, msgspec.DecodeError, KeyError."""
    found: list[Sample] = []
    for file in files:
        points = read(file)
        target = TARGETS[points.target]
        pairs = zip(points.points, traced(points.points), strict=True)
        found += [Sample(point, region, target) for point, region in pairs if region is not None]
    return found


def operator_by_operator(sample: Sample) -> float:
    """As estimates were before: each operator of the tensor programs is a launch."""
    _, cut = cut_region(sample.region, [])
    return sum(estimate_library_us(part.program, sample.target) for part in cut if isinstance(part, SearchUnit))


def times(samples: Sequence[Sample], estimate: Callable[[Sample, str], float]) -> Pairs:
    """Estimated and measured, of every peer that is estimated."""
    return [(estimate(one, peer), one.point.us[peer]) for one in samples for peer in ESTIMATED if peer in one.point.us]


def held_out(samples: Sequence[Sample]) -> Pairs:
    """Each sample by rates that were fitted without it."""
    pairs: Pairs = []
    for fold in range(FOLDS):
        rates = fit([one for at, one in enumerate(samples) if at % FOLDS != fold], rounds=12)
        out = [one for at, one in enumerate(samples) if at % FOLDS == fold]
        pairs += times(out, lambda one, peer, rates=rates: one.peers_us(rates)[peer])
    return pairs


def compare(samples: Sequence[Sample], search_s: float | None, plot: Path | None) -> None:
    rates = fitted().rates
    known = [one for one in samples if times([one], lambda _, __: 1.0)]
    before = times(known, lambda one, _: operator_by_operator(one))
    print(f"PyTorch's times, {', '.join(ESTIMATED)}")
    print(f"  operator by operator  {agreement([pair for pair in before if pair[0] > 0])}")
    print(f"  as PyTorch runs it    {agreement(times(known, lambda one, peer: one.peers_us(rates)[peer]))}")
    print(f"  {FOLDS}-fold, held out      {agreement(held_out(known))}")
    if search_s is not None:
        _speedups([one for one in known if OURS in one.point.us], rates, search_s, plot)


def _speedups(samples: Sequence[Sample], rates: Rates, search_s: float, plot: Path | None) -> None:
    """Of the generated code over the best of what is estimated, and over the code as it runs. plot: of the latter"""
    named: list[tuple[str, float, float]] = []
    old: Pairs = []
    new: Pairs = []
    code: Pairs = []
    ours: Pairs = []
    for one in samples:
        kernels = _estimated_us(one, search_s)
        if not kernels:
            print(f"  {one.point.name}: no kernel was found", file=sys.stderr)
            continue
        measured, found = one.point.us, one.peers_us(rates)
        best = min(measured[peer] for peer in ESTIMATED if peer in measured)
        ours.append((kernels, measured[OURS]))
        old.append((operator_by_operator(one) / kernels, best / measured[OURS]))
        new.append((min(found.values()) / kernels, best / measured[OURS]))
        code.append((found["eager"] / kernels, measured["eager"] / measured[OURS]))
        named.append((one.point.name, *code[-1]))
        print(
            f"  {one.point.name:<45} over the best: {old[-1][0]:6.2f} before {new[-1][0]:6.2f} after"
            f" {new[-1][1]:6.2f} measured"
        )
    print("speedups")
    print(f"  operator by operator, over the best     {agreement(old)}")
    print(f"  as PyTorch runs it, over the best       {agreement(new)}")
    print(f"  as PyTorch runs it, over the code       {agreement(code)}")
    print(f"  times of the generated code             {agreement(ours)}")
    if plot is not None and named:
        plot.write_text(scatter(named, f"Speedup over the code as it runs, {fitted().device}"), encoding="utf-8")


def _estimated_us(sample: Sample, search_s: float) -> float:
    """Of the kernels that a search finds; 0 without any."""
    trace = Trace("points.py", (sample.region,))
    options = Options(target=sample.target.name, budget_s=search_s, measure=False)
    for event in run_trace(trace, detect(), sample.target, options):
        if isinstance(event, RegionDone):
            solutions = [unit.solution for unit in event.result.units if unit.solution is not None]
            if len(solutions) == len(event.result.units):
                return fitted().rates.graph_us + sum(solution.estimate_us for solution in solutions)
    return 0.0


def refit(samples: Sequence[Sample], device: str, date: str, path: Path = FILE) -> Fitted:
    """Fitted to the samples, and kept for the product: to a file beside it first."""
    count = len(times(samples, lambda _, __: 1.0))
    found = Fitted(device, date, count, fit(samples))
    new = path.with_name(f"{path.name}.new")
    new.write_bytes(msgspec.json.format(msgspec.json.encode(found), indent=1) + b"\n")
    new.replace(path)
    fitted.cache_clear()
    return found


def main(arguments: Sequence[str]) -> int:
    """Exit status."""
    parser = argparse.ArgumentParser(prog="python -m mugraph.research.baseline")
    parser.add_argument("what", choices=["compare", "fit", "measure"])
    parser.add_argument("files", nargs="*", type=Path)
    parser.add_argument("--search", type=float, metavar="SECONDS")
    parser.add_argument("--plot", type=Path, metavar="SVG")
    parser.add_argument("--seconds", type=float, default=540.0)
    given = parser.parse_args(arguments)
    files: list[Path] = given.files or kept()
    try:
        if given.what == "measure":
            from mugraph.research.grid import measure

            if len(given.files) != 1:
                parser.error("measure takes one file")
            why = measure(given.files[0], given.seconds)
            if why is not None:
                print(why, file=sys.stderr)
                return 1
            files = [*kept(), *(file for file in given.files if file.resolve() not in kept())]
        samples = samples_of(files)
    except (OSError, msgspec.DecodeError, KeyError) as error:
        print(f"the points cannot be read: {error}", file=sys.stderr)
        return 2
    if given.what != "compare":
        last = read(files[-1])
        found = refit(samples, last.device, last.date)
        print(f"fitted to {found.points} times: {found.rates}")
    compare(samples, given.search, given.plot)
    return 0


if __name__ == "__main__":
    raise SystemExit(main(sys.argv[1:]))
