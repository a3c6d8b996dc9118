"""How well the cost model ranks kernels whose times were measured, and its costs fitted to them.

    python -m mugraph.research.calibration compare FILES...   a line a program
    python -m mugraph.research.calibration fit FILES...       fit the costs again, and keep them

FILES: as `research.candidates` writes them.
"""

from __future__ import annotations

import argparse
import sys
from collections.abc import Iterable, Sequence
from dataclasses import asdict, dataclass
from math import log
from pathlib import Path

import msgspec
import numpy as np

from mugraph.baseline.rates import fitted
from mugraph.ir.block import Schedule
from mugraph.ir.library import library_call
from mugraph.research.fitting import agreement, descended
from mugraph.research.measured import Measured, candidates_of, read
from mugraph.search.schedules.cost import Usage, estimate_call_us, estimate_us, usage
from mugraph.search.schedules.costs import FILE, Costs, FittedCosts, fitted_costs
from mugraph.search.schedules.tiles import Shape
from mugraph.search.schedules.work import Work, work
from mugraph.targets import TARGETS, Target

FIRST = 16
TOWARDS = 2e-3
"""How much a cost is held to where it began, for those that make up for one another."""
SHARES = frozenset(("bandwidth", "wide", "narrow", "exact", "overlap", "serial"))
APART = 0.5
"""How much it counts whether a program's kernels are told apart, where the error of its least time counts 1."""


@dataclass(frozen=True, slots=True)
class Kernel:
    """A generated kernel, with what does not depend on costs."""

    shape: Shape
    schedule: Schedule
    used: Usage
    work: Work


@dataclass(frozen=True, slots=True)
class Timed:
    """A candidate. library_us: of its pre-defined kernels, by estimate"""

    program: str
    kernels: tuple[Kernel, ...]
    library_us: float
    measured_us: float
    target: Target

    def estimated(self, costs: Costs | None = None) -> float:
        """Microseconds, with what a region costs once: it was measured as one."""
        own = sum(estimate_us(k.shape, k.schedule, self.target, k.used, k.work, costs) for k in self.kernels)
        return fitted().rates.graph_us + self.library_us + own


@dataclass(frozen=True, slots=True)
class Score:
    """Of one program's kernels.

    correlation: of the logarithms; spearman: of the ranks
    regret:      best measured of the first 16 by estimate / best measured
    bias:        geometric mean of estimate / measured
    best:        least estimate / least time
    """

    count: int
    correlation: float
    spearman: float
    regret: float
    bias: float
    best: float


Rows = Sequence[tuple[str, float, float]]
"""Program, estimated and measured microseconds."""


def timed(measured: Measured) -> list[Timed]:
    """What has a time. Raises ir.json.FormatError."""
    target = TARGETS[measured.target]
    found: list[Timed] = []
    for program in measured.programs:
        shapes: dict[int, Shape] = {}
        for row, candidate in candidates_of(program):
            if row.us is None:
                continue
            kernels: list[Kernel] = []
            library = 0.0
            for kernel in candidate.kernels:
                if kernel.schedule.library:
                    call = library_call(kernel.block)
                    library += estimate_call_us(call, target) if call is not None else 0.0
                    continue
                shape = shapes.setdefault(id(kernel.block), Shape(kernel.block))
                done = work(shape, kernel.schedule, kernel.schedule.blocks(shape.sizes))
                kernels.append(Kernel(shape, kernel.schedule, usage(shape, kernel.schedule, target), done))
            if kernels and all(kernel.used.blocks for kernel in kernels):
                found.append(Timed(program.name, tuple(kernels), library, row.us, target))
    return found


def estimated(rows: Iterable[Timed], costs: Costs | None = None) -> list[tuple[str, float, float]]:
    return [(row.program, row.estimated(costs), row.measured_us) for row in rows]


def pooled(rows: Rows) -> float:
    """Correlation of estimates and measurements of all programs together, in logarithms."""
    return _correlation(*np.log([pair for _, *pair in rows]).T)


def scores(rows: Rows) -> dict[str, Score]:
    """By program."""
    programs: dict[str, list[tuple[float, float]]] = {}
    for program, estimate, us in rows:
        programs.setdefault(program, []).append((estimate, us))
    return {program: _score(np.array(own)) for program, own in programs.items()}


def _score(rows: np.ndarray) -> Score:
    estimate, measured = rows.T
    first = np.argsort(estimate, kind="stable")[:FIRST]
    return Score(
        len(measured),
        _correlation(np.log(estimate), np.log(measured)),
        _correlation(_ranks(estimate), _ranks(measured)),
        float(measured[first].min() / measured.min()),
        float(np.exp(np.log(estimate / measured).mean())),
        float(estimate.min() / measured.min()),
    )


def _ranks(values: np.ndarray) -> np.ndarray:
    """Equal values share their mean rank."""
    values = np.round(values, 9)
    return np.array([(values < v).sum() + ((values == v).sum() - 1) / 2 for v in values])


def _correlation(a: np.ndarray, b: np.ndarray) -> float:
    if a.std() == 0 or b.std() == 0:
        return 0.0
    return float(np.corrcoef(a, b)[0, 1])


def fit(rows: Sequence[Timed], begin: Costs | None = None, rounds: int = 30) -> Costs:
    """By descent, as the rates of PyTorch's kernels are. Each program counts as much, whatever the number of its
    kernels: by how far the least estimate is from the least time, since that is what is told of a program, and by how
    its kernels are told apart."""
    programs: dict[str, list[Timed]] = {}
    for row in rows:
        programs.setdefault(row.program, []).append(row)

    def loss(values: dict[str, float]) -> float:
        costs = Costs(**values)
        held = sum(log(values[name] / start[name]) ** 2 for name in values)
        return sum(_loss(own, costs) for own in programs.values()) / len(programs) + TOWARDS * held

    start = asdict(begin or Costs())
    return Costs(**descended(start, loss, SHARES, rounds))


def _loss(rows: Sequence[Timed], costs: Costs) -> float:
    """Of one program."""
    errors = [log(row.estimated(costs) / row.measured_us) for row in rows]
    least = min(row.measured_us for row in rows)
    far = log(min(row.estimated(costs) for row in rows) / least)
    weights = [(least / row.measured_us) ** 0.5 for row in rows]
    mean = sum(w * e for w, e in zip(weights, errors, strict=True)) / sum(weights)
    apart = sum(w * min((e - mean) ** 2, 1.0) for w, e in zip(weights, errors, strict=True)) / sum(weights)
    return min(far * far, abs(far)) + APART * apart


def _columns(arguments: Sequence[Path]) -> tuple[list[Measured], list[Timed]]:
    files = [read(path) for path in arguments]
    return files, [row for file in files for row in timed(file)]


def report(rows: Rows) -> None:
    print(f"{'program':<44}{'kernels':>8}{'log corr.':>11}{'Spearman':>10}{'regret':>8}{'est./meas.':>12}{'best':>7}")
    for program, score in scores(rows).items():
        print(
            f"{program:<44}{score.count:>8}{score.correlation:>11.2f}{score.spearman:>10.2f}{score.regret:>8.3f}"
            f"{score.bias:>12.2f}{score.best:>7.2f}"
        )
    best: dict[str, tuple[float, float]] = {}
    for program, estimate, us in rows:
        before = best.get(program, (estimate, us))
        best[program] = (min(before[0], estimate), min(before[1], us))
    print(f"all:                   {agreement([(estimate, us) for _, estimate, us in rows])}")
    print(f"least of a program:    {agreement(list(best.values()))}")


def refit(files: Sequence[Measured], rows: Sequence[Timed], path: Path = FILE) -> FittedCosts:
    """Fitted to the rows, and kept for the product: to a file beside it first."""
    last = files[-1]
    found = FittedCosts(last.device, last.date, len(rows), fit(rows, fitted_costs().costs))
    new = path.with_name(f"{path.name}.new")
    new.write_bytes(msgspec.json.format(msgspec.json.encode(found), indent=1) + b"\n")
    new.replace(path)
    fitted_costs.cache_clear()
    return found


def main(arguments: Sequence[str]) -> int:
    """Exit status."""
    parser = argparse.ArgumentParser(prog="python -m mugraph.research.calibration")
    parser.add_argument("what", choices=["compare", "fit"])
    parser.add_argument("files", nargs="+", type=Path)
    given = parser.parse_args(arguments)
    try:
        files, rows = _columns(given.files)
    except (OSError, msgspec.DecodeError) as error:
        print(f"the kernels cannot be read: {error}", file=sys.stderr)
        return 2
    if given.what == "fit":
        found = refit(files, rows)
        print(f"fitted to {found.kernels} kernels: {found.costs}")
    for file in files:
        versions = ", ".join(f"{name} {version}" for name, version in file.versions.items())
        print(f"measured on {file.device}, {file.date} ({versions})")
    report(estimated(rows))
    return 0


if __name__ == "__main__":
    raise SystemExit(main(sys.argv[1:]))
