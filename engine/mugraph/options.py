"""What a person can choose about a run of the pipeline."""

from __future__ import annotations

from dataclasses import dataclass


@dataclass(frozen=True)
class Bounds:
    """Of the search of one search unit.

    seconds:     it may take
    max_kernels: of its kernel graph
    max_ops:     of a block graph: up to so many operators, all are looked for, however the program is written
    """

    seconds: float = 20.0
    max_kernels: int = 5
    max_ops: int = 11

    def __str__(self) -> str:
        return f"{self.seconds:g} s, {self.max_kernels} kernels, {self.max_ops} operators"


@dataclass(frozen=True)
class Options:
    """target: as --target takes it. budget_s: seconds of search for one search unit. measure: on a GPU, if there is
    one. trace_timeout_s: for running the user's module. executor: where the search is worked on, by its name.
    max_kernels, max_ops: as in Bounds."""

    target: str = "auto"
    budget_s: float = 20.0
    measure: bool = True
    trace_timeout_s: float = 60.0
    executor: str = "inline"
    max_kernels: int = 5
    max_ops: int = 11

    @property
    def bounds(self) -> Bounds:
        return Bounds(self.budget_s, self.max_kernels, self.max_ops)
