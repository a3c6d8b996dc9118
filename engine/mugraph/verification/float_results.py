"""What the process that runs kernels answers (float_test.py): of a kernel, and of a search unit's recorded calls."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any, cast

_NOTHING_RIGHT = 0.5
"""Relative error of a result that says nothing."""


@dataclass(frozen=True)
class FloatScenario:
    """One kind of inputs; errors are ||out - ref|| / ||ref||. ulps: the largest difference of an element from what
    eager PyTorch rounds it to, in units in the last place. same_bits: every element of every output is what eager
    PyTorch rounds it to, or both are NaN; same_but_zeros: so it is if 0 and -0 are one"""

    name: str
    passed: bool
    error: float
    eager_error: float
    ulps: float
    same_bits: bool = False
    same_but_zeros: bool = False


@dataclass(frozen=True)
class FloatResult:
    """
    passed:          the kernel ran and its error is a small multiple of eager PyTorch's in every scenario
    reason:          why not, in one sentence
    max_rel_error:   the largest over the scenarios of ||out - ref|| / ||ref||, ref in float64; None if nothing ran.
                     Those in which nothing of eager PyTorch's own result is right, as all of it is rounded to 0, count
                     only where there are no others
    eager_rel_error: eager PyTorch's in the same scenario
    device:          "interpreter" or the GPU's name; None if the process never answered
    """

    passed: bool
    reason: str | None
    max_rel_error: float | None = None
    eager_rel_error: float | None = None
    device: str | None = None
    scenarios: tuple[FloatScenario, ...] = ()

    @property
    def ulps(self) -> Mapping[str, float]:
        """Scenario -> largest difference from eager PyTorch's rounding, in units in the last place."""
        return {one.name: one.ulps for one in self.scenarios if one.ulps == one.ulps}


@dataclass(frozen=True)
class LoweringResult:
    """
    passed: None where it could not be told whether the program is what the calls compute
    reason: why it is not, or why it could not be told: a clause
    output: the program's tensor that differs, "" for none; value: its value number
    sizes:  of the program's axes, where they were smaller than its own
    wide:   the type that stood for all floating-point types
    share:  of the outputs' elements, that were compared
    error:  the largest difference, relative to the root mean square of an output
    """

    passed: bool | None
    reason: str = ""
    output: str = ""
    value: int = -1
    sizes: Mapping[str, int] = field(default_factory=dict[str, int])
    wide: str = "float64"
    share: float = 1.0
    error: float = 0.0


def result_of(answer: dict[str, Any]) -> FloatResult:
    """answer: as float_child.py gives it, to a kernel"""
    device = str(answer["device"])
    if answer["error"] is not None:
        return FloatResult(False, f"the kernel failed: {answer['error']}", device=device)
    results = cast("list[dict[str, Any]]", answer["results"])
    if not results:
        return FloatResult(False, "the program overflows its own types for all inputs tried", device=device)
    scenarios = tuple(
        FloatScenario(
            r["scenario"], r["passed"], r["error"], r["eager_error"], r["ulps"], r["same_bits"], r["same_but_zeros"]
        )
        for r in results
    )
    reason = next((str(r["reason"]) for r in results if not r["passed"]), None)
    measured = [s for s in scenarios if s.error == s.error]  # NaN: nothing to compare
    said = [s for s in measured if not s.eager_error > _NOTHING_RIGHT] or measured
    worst = max(said, key=lambda s: s.error, default=None)
    return FloatResult(
        reason is None,
        reason,
        worst.error if worst else None,
        worst.eager_error if worst else None,
        device,
        scenarios,
    )
