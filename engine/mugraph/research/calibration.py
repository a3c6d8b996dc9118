"""`python -m mugraph.research.calibration FIXTURE`: how well estimates rank kernels whose times were measured.

A fixture is a JSON object: "device", "date", "versions", "target", "topologies" (blocks as ir.json writes them) and
"rows", each [program, number of its topology, [grid, loops, swap, warps, stages], microseconds].
"""

from __future__ import annotations

import sys
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path

import msgspec
import numpy as np

from mugraph.ir.block import Schedule
from mugraph.ir.json import block_from_json
from mugraph.search.schedules.cost import estimate_us
from mugraph.search.schedules.tiles import Shape
from mugraph.targets import TARGETS

FIRST = 16


class Fixture(msgspec.Struct):
    """What was measured, where and when."""

    device: str
    date: str
    versions: Mapping[str, str]
    target: str
    topologies: Sequence[object]
    rows: Sequence[tuple[str, int, tuple[tuple[tuple[str, int], ...], dict[str, int], bool, int, int], float]]


@dataclass(frozen=True, slots=True)
class Timed:
    """One kernel: its program, the estimate and the measured microseconds."""

    program: str
    estimate_us: float
    measured_us: float


@dataclass(frozen=True, slots=True)
class Score:
    """Of one program's kernels.

    correlation: of the logarithms; spearman: of the ranks
    regret:      best measured of the first 16 by estimate / best measured
    bias:        geometric mean of estimate / measured
    """

    count: int
    correlation: float
    spearman: float
    regret: float
    bias: float


def read(path: Path) -> Fixture:
    """Raises OSError, msgspec.DecodeError."""
    return msgspec.json.decode(path.read_bytes(), type=Fixture)


def timed(fixture: Fixture) -> list[Timed]:
    """Every row with the estimate of today's model."""
    target = TARGETS[fixture.target]
    shapes = [Shape(block_from_json(document)) for document in fixture.topologies]
    return [
        Timed(program, estimate_us(shapes[number], Schedule(grid, loops, swap, warps, stages), target), us)
        for program, number, (grid, loops, swap, warps, stages), us in fixture.rows
    ]


def pooled(rows: Iterable[Timed]) -> float:
    """Correlation of estimates and measurements of all programs together, in logarithms."""
    pairs = [(row.estimate_us, row.measured_us) for row in rows]
    return _correlation(*np.log(pairs).T)


def scores(rows: Iterable[Timed]) -> dict[str, Score]:
    """By program."""
    programs: dict[str, list[Timed]] = {}
    for row in rows:
        programs.setdefault(row.program, []).append(row)
    return {program: _score(own) for program, own in programs.items()}


def _score(rows: Sequence[Timed]) -> Score:
    estimate = np.array([row.estimate_us for row in rows])
    measured = np.array([row.measured_us for row in rows])
    first = np.argsort(estimate, kind="stable")[:FIRST]
    return Score(
        len(rows),
        _correlation(np.log(estimate), np.log(measured)),
        _correlation(_ranks(estimate), _ranks(measured)),
        float(measured[first].min() / measured.min()),
        float(np.exp(np.log(estimate / measured).mean())),
    )


def _ranks(values: np.ndarray) -> np.ndarray:
    """Equal values share their mean rank."""
    values = np.round(values, 9)
    return np.array([(values < v).sum() + ((values == v).sum() - 1) / 2 for v in values])


def _correlation(a: np.ndarray, b: np.ndarray) -> float:
    if a.std() == 0 or b.std() == 0:
        return 0.0
    return float(np.corrcoef(a, b)[0, 1])


def main(arguments: Sequence[str]) -> int:
    """Print one line per program. Returns the exit status."""
    if len(arguments) != 1:
        print("usage: python -m mugraph.research.calibration FIXTURE", file=sys.stderr)
        return 2
    try:
        fixture = read(Path(arguments[0]))
    except (OSError, msgspec.DecodeError) as error:
        print(f"cannot read {arguments[0]}: {error}", file=sys.stderr)
        return 2
    rows = timed(fixture)
    versions = ", ".join(f"{name} {version}" for name, version in fixture.versions.items())
    print(f"{len(rows)} kernels measured on {fixture.device}, {fixture.date} ({versions})")
    print(f"{'program':<24}{'kernels':>8}{'log corr.':>11}{'Spearman':>10}{'regret':>8}{'est./meas.':>12}")
    for program, score in scores(rows).items():
        print(
            f"{program:<24}{score.count:>8}{score.correlation:>11.2f}{score.spearman:>10.2f}{score.regret:>8.3f}"
            f"{score.bias:>12.2f}"
        )
    print(f"all together: correlation {pooled(rows):.3f} in logarithms")
    return 0


if __name__ == "__main__":
    raise SystemExit(main(sys.argv[1:]))
