"""Lower: the best candidates as Triton kernels."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field, replace

from mugraph.ir.block import BlockGraph, Candidate, Schedule
from mugraph.ir.kernel import Rejected
from mugraph.ir.names import Scope
from mugraph.ir.ops import Kind
from mugraph.optimizer.layouts import relaid
from mugraph.optimizer.order import by_depth
from mugraph.search.schedules.splits import COMBINE
from mugraph.sizes.table import SizeTable
from mugraph.tune.tuner import Variant
from mugraph.verification.verdict import Verdict


@dataclass(frozen=True)
class Written:
    """Candidates with their kernels and verdicts, best first. rejected: reason -> how many cannot be written."""

    variants: Sequence[tuple[Variant, Verdict]]
    rejected: Counter[str] = field(default_factory=Counter[str])


def written(
    candidates: Sequence[tuple[Candidate, Verdict]],
    table: SizeTable,
    name: str,
    most: int,
    *,
    measured: bool,
    without: frozenset[str] = frozenset(),
) -> Written:
    """The best `most` candidates that can be written, their kernels renamed after `name`.

    measured: the schedules for sizes smaller than the largest will be measured, so none are estimated here. Otherwise
              they are for the best one, which is nearly always the one that is chosen, and `by_sizes` says the others'
    without:  optimisations of verified μGraphs that are left out

    Where what kernels hand to one another is estimated to be faster in another layout, the candidate comes with that
    first, and as it was after it.
    """
    variants: list[tuple[Variant, Verdict]] = []
    rejected: Counter[str] = Counter()
    for candidate, verdict in table.ranked(candidates):
        for renamed in _lying(named(candidate, name, ordered="order" not in without), table, without):
            try:
                kernels = kernels_of(renamed)
                source = table.lowered(kernels) if measured or variants else table.source(kernels)
                variants.append((Variant(renamed, source), verdict))
            except Rejected as error:
                rejected[str(error)] += 1
        if len(variants) >= most:
            break
    return Written(variants[:most], rejected)


def _lying(candidate: Candidate, table: SizeTable, without: frozenset[str]) -> Iterator[Candidate]:
    if candidate.then is not None and not table.program.least and "layouts" not in without:
        other = relaid(candidate, table.target)
        if other is not None:
            yield other
    yield candidate


def kernels_of(candidate: Candidate) -> list[tuple[BlockGraph, Schedule]]:
    return [(kernel.block, kernel.schedule) for kernel in candidate.kernels]


def named(candidate: Candidate, name: str, *, ordered: bool = True) -> Candidate:
    """The first kernel is called `name`; the others after what they finish, or after the value they compute."""
    taken = Scope([name])

    def renamed(kernel: Candidate, own: str) -> Candidate:
        then = None
        if kernel.then is not None:
            block = kernel.then.block
            finishes = block.name == f"{kernel.block.name}_{COMBINE}"
            stored = next(op.inputs[0] for op in block.ops if op.kind is Kind.STORE)
            then = renamed(kernel.then, taken.unique(f"{own}_{COMBINE}" if finishes else f"{name}_{stored}"))
        block = replace(kernel.block, name=own)
        return replace(kernel, block=by_depth(block) if ordered and not kernel.schedule.library else block, then=then)

    return renamed(candidate, name)
