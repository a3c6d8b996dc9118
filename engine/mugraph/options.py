"""What a person can choose about a run of the pipeline."""

from __future__ import annotations

from dataclasses import dataclass


@dataclass(frozen=True)
class Options:
    """target: as --target takes it. budget_s: seconds of search for one search unit. measure: on a GPU, if there is
    one. trace_timeout_s: for running the user's module. executor: where the search is worked on, by its name.
    max_kernels: of the kernel graph of one search unit."""

    target: str = "auto"
    budget_s: float = 20.0
    measure: bool = True
    trace_timeout_s: float = 60.0
    executor: str = "inline"
    max_kernels: int = 5
