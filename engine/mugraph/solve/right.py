"""A kernel that has passed every test, and the solution that is made of it, with thread graphs (the step "fuse")."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, replace

from mugraph.events import Solution
from mugraph.ir.block import Candidate
from mugraph.ir.kernel import KernelSource
from mugraph.ir.program import TensorProgram
from mugraph.optimizer.nodes import node_of
from mugraph.sizes.table import tested_sizes
from mugraph.store.keys import versions
from mugraph.verification.document import proof_of
from mugraph.verification.float_results import FloatResult
from mugraph.verification.verdict import SameBits, Verdict


@dataclass(frozen=True)
class Right:
    """measured_us: of the kernel. plain_us: of the unit as plain PyTorch calls. Both None where nothing is measured."""

    candidate: Candidate
    source: KernelSource
    verdict: Verdict
    measured_us: float | None = None
    plain_us: float | None = None


@dataclass(frozen=True)
class Outcome:
    """Of the tests of some kernels. right: the best that passed all; rejected: reason -> how many others did not.
    slower: where PyTorch's calls were measured to be so much faster than all kernels that none of these was tested
    untested: the number of the best of those that there was no time for, where none is right
    number: of that which is right, among those that were tested one after the other"""

    right: Right | None
    rejected: Mapping[str, int]
    slower: Slower | None = None
    untested: int | None = None
    number: int = 0


@dataclass(frozen=True)
class Slower:
    """The fastest kernel, and what PyTorch's calls take. Microseconds on the device."""

    us: float
    plain_us: float

    @property
    def words(self) -> str:
        times = f"{self.us:.1f} µs against {self.plain_us:.1f}"
        return f"on the device the kernel is slower than the code as it runs, {times}"


def with_float(
    verdict: Verdict,
    tested: FloatResult,
    indexing: Verdict,
    text: Verdict,
    program: TensorProgram,
    bits: SameBits | None = None,
) -> Verdict:
    """The verdict on a topology with what the tests of its kernel add.

    program: at the sizes of the float test; of a dynamic axis, the largest of them. bits: whether they are PyTorch's
    """
    return replace(
        verdict,
        max_rel_error=tested.max_rel_error,
        eager_rel_error=tested.eager_rel_error,
        ulps=tested.ulps,
        float_sizes=dict(program.sizes),
        dynamic_sizes={a: tuple(sorted({at[a] for at in tested_sizes(program)})) for a in program.least},
        float_device=tested.device,
        versions=versions(),
        indexing=indexing.indexing,
        text=text.text,
        proved_sizes=text.proved_sizes,
        proved_claims=text.proved_claims,
        same_bits=bits,
    )


def proved(right: Right, program: TensorProgram) -> Right:
    """With a proof of its algebra, or why there is none."""
    kernels = [(kernel.block, kernel.schedule) for kernel in right.candidate.kernels]
    return replace(right, verdict=replace(right.verdict, proof=proof_of(program, kernels)))


def solution_of(right: Right, library_us: float) -> Solution:
    kernel, *then = (node_of(one.block, one.schedule) for one in right.candidate.kernels)
    return Solution(
        kernel,
        right.source,
        right.verdict,
        right.candidate.estimate_us,
        library_us,
        right.measured_us,
        right.plain_us,
        tuple(then),
    )
