"""What is to be written for one region: a run of steps, each a generated kernel or plain PyTorch."""

from __future__ import annotations

from dataclasses import dataclass

from mugraph.ir.mugraph import GraphKernel, MuGraph
from mugraph.trace.region import LaxPiece, PlainPiece, Region
from mugraph.verify.verdict import Verdict


@dataclass(frozen=True)
class KernelStep:
    """A Lax piece of the region computed by a generated kernel, and those after it that finish what it leaves. One
    source, named after the first, launches all."""

    piece: LaxPiece
    kernel: GraphKernel
    verdict: Verdict
    then: tuple[GraphKernel, ...] = ()

    @property
    def kernels(self) -> tuple[GraphKernel, ...]:
        """In the order they run."""
        return (self.kernel, *self.then)


@dataclass(frozen=True)
class RegionPlan:
    """name: of the function that replaces the region, unique in the file ("rms_norm_linear_forward")."""

    name: str
    region: Region
    steps: tuple[KernelStep | PlainPiece, ...]
    mugraph: MuGraph
