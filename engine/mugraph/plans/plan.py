"""What is to be written for one region: a run of steps, each a generated kernel or plain PyTorch."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import TypeVar

from mugraph.ir.mugraph import GraphKernel, LibraryKernel, MuGraph
from mugraph.ir.region import PlainCalls, Region, SearchUnit
from mugraph.verification.verdict import Verdict

Other = TypeVar("Other")


@dataclass(frozen=True)
class KernelStep:
    """A search unit of the region that a kernel graph computes: one kernel, and those that run after it. One source,
    named after the first, launches all of them.

    one_launch: those of them, by their names, that are launched together, side by side
    combined: pairs of them, of which the second combines what the first stores, in the same launch
    over:     tensors that it writes in the memory of others that it reads: name -> of the input
    """

    unit: SearchUnit
    kernel: GraphKernel | LibraryKernel
    verdict: Verdict
    then: tuple[GraphKernel | LibraryKernel, ...] = ()
    one_launch: tuple[tuple[str, ...], ...] = ()
    combined: tuple[tuple[str, str], ...] = ()
    over: Mapping[str, str] = field(default_factory=dict[str, str])

    @property
    def kernels(self) -> tuple[GraphKernel | LibraryKernel, ...]:
        """In the order they run."""
        return (self.kernel, *self.then)


def joined(steps: Sequence[Other | PlainCalls]) -> list[Other | PlainCalls]:
    """With plain calls that follow one another as one step."""
    found: list[Other | PlainCalls] = []
    for step in steps:
        last = found[-1] if found else None
        if isinstance(step, PlainCalls) and isinstance(last, PlainCalls):
            found[-1] = PlainCalls((*last.calls, *step.calls))
        else:
            found.append(step)
    return found


@dataclass(frozen=True)
class RegionPlan:
    """name: of the function that replaces the region, unique in the file ("rms_norm_linear_forward").

    faster_for: for a region with a size in a range: the spans of that size, both ends included, in which the plan is
                faster than the user's code. In the others the user's code runs. None where no size varies, or where
                the plan is faster at every size
    without:    optimisations of verified μGraphs that are left out (protocol/settings.py)
    """

    name: str
    region: Region
    steps: tuple[KernelStep | PlainCalls, ...]
    mugraph: MuGraph
    faster_for: tuple[tuple[int, int], ...] | None = None
    without: frozenset[str] = frozenset()
