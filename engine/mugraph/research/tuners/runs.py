"""Runs of tuners, as data that is kept; what each has seen after every trial."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from pathlib import Path
from statistics import fmean, pstdev
from typing import Literal, get_args

import msgspec

from mugraph.protocol.settings import TunerName
from mugraph.research.tuners.prepared import Prepared
from mugraph.search.schedules.parameters import Point
from mugraph.tune.tuners.choose import tuner_of
from mugraph.tune.tuners.opevo import OpEvo
from mugraph.tune.tuners.tuner import Tuner

UNSEEDED = "opevo-unseeded"
"""OpEvo as published: its first generation is drawn at random."""
TUNERS: tuple[str, ...] = (*get_args(TunerName), UNSEEDED)
WITHOUT_CHANCE = ("walk",)
"""All seeds are one."""


class Run(msgspec.Struct):
    """us: of each trial, in order; None where it failed. done: it has come to its end, or to all trials"""

    tuner: str
    seed: int
    us: list[float | None] = []
    done: bool = False


class Compared(msgspec.Struct):
    """Of one operator.

    asked:  distinct kernels that the runs have asked for
    times:  of every kernel that was measured, for all tuners; None where it has none, and `why` says why not
    tested: kernels that were right on the device
    """

    name: str
    says: str
    flops: int
    asked: int = 0
    times: dict[str, float | None] = {}
    why: dict[str, str] = {}
    tested: list[str] = []
    runs: list[Run] = []


class Comparison(msgspec.Struct):
    """source: "estimated" is the cost model with noise: nothing was measured"""

    source: Literal["measured", "estimated"]
    target: str
    dtype: str
    topologies: int
    device: str = ""
    method: str = ""
    date: str = ""
    versions: Mapping[str, str] = {}
    trials: int = 0
    operators: list[Compared] = []

    def operator(self, name: str) -> Compared | None:
        return next((one for one in self.operators if one.name == name), None)


def read(path: Path) -> Comparison:
    """Raises OSError, msgspec.DecodeError."""
    return msgspec.json.decode(path.read_bytes(), type=Comparison)


def write(found: Comparison, path: Path) -> None:
    """To a file beside it first."""
    new = path.with_name(f"{path.name}.new")
    new.write_bytes(msgspec.json.encode(found) + b"\n")
    new.replace(path)


def made(name: str, prepared: Prepared, trials: int, seed: int) -> Tuner[Point]:
    """A tuner of TUNERS. Raises ModuleNotFoundError where a package is missing that it needs."""
    if name == UNSEEDED:
        return OpEvo(prepared.space, seed)
    known = next(one for one in get_args(TunerName) if one == name)
    return tuner_of(known, prepared.space, prepared.ranked, trials, seed)


def tflops(flops: int, us: float | None) -> float:
    return flops / us * 1e-6 if us else 0.0


def best_so_far(run: Run, flops: int, trials: int) -> list[float]:
    """TFLOPS of the fastest after each trial, 0 while there is none. What ended early keeps its last."""
    found: list[float] = []
    best = 0.0
    for us in run.us[:trials]:
        best = max(best, tflops(flops, us))
        found.append(best)
    return found + [best] * (trials - len(found))


def over_seeds(runs: Sequence[Run], flops: int, trials: int) -> list[tuple[float, float]]:
    """Mean and standard deviation of the best so far after each trial, over all seeds."""
    curves = [best_so_far(run, flops, trials) for run in runs]
    return [(fmean(column), pstdev(column)) for column in zip(*curves, strict=True)]


def by_tuner(found: Compared) -> dict[str, list[Run]]:
    """The finished runs of each, in the order of TUNERS."""
    every = {name: [run for run in found.runs if run.tuner == name and run.done] for name in TUNERS}
    return {name: runs for name, runs in every.items() if runs}
