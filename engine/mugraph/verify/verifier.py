"""Are block graphs, run one after the other, the same function as the program? Random tests over finite fields
(Mirage §5.2)."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass

import numpy as np

from mugraph.ir.block import BlockGraph, Schedule
from mugraph.ir.masks import diagonal, extents
from mugraph.ir.ops import Kind, Op
from mugraph.ir.program import TensorProgram
from mugraph.verify.bound import earned_bound
from mugraph.verify.evaluate import Malformed, evaluate_program
from mugraph.verify.execute import execute_kernels
from mugraph.verify.field import FieldArithmetic, FieldValue
from mugraph.verify.forms import Unbounded
from mugraph.verify.inputs import draw_inputs
from mugraph.verify.order import REPETITIONS_OF_MAXIMA
from mugraph.verify.roots import takes_roots, without_number
from mugraph.verify.sizes import Assignment, assignments, grid_axes, resize, resize_block
from mugraph.verify.verdict import Verdict

REPETITIONS = 4
"""Seeds at each of the two sizes where Theorem 2 gives no bound to reach."""
TARGET = 1e-9
"""The probability of accepting a wrong graph that is aimed at where Theorem 2 applies."""

_DRAWS = 8

Candidate = Callable[[Mapping[str, FieldValue], FieldArithmetic], Mapping[str, FieldValue]]
"""Input tensors -> (at least) output tensors."""


@dataclass(frozen=True)
class Rejected:
    """Why the graph is not the program."""

    reason: str


def verify_topology(
    program: TensorProgram, block: BlockGraph, seed: int | None = None, grid: Sequence[str] | None = None
) -> Verdict:
    """Compare a topology with the program at two scaled-down sizes, tile by tile.

    seed: for tests; None takes fresh randomness from the operating system
    grid: axes to cut into blocks; None takes all that can be (sizes.grid_axes)
    Never raises for a wrong or malformed graph: the verdict says what is wrong.
    """
    return verify_topologies(program, [(block, grid)], seed)


def verify_topologies(
    program: TensorProgram, kernels: Sequence[tuple[BlockGraph, Sequence[str] | None]], seed: int | None = None
) -> Verdict:
    """As verify_topology, for kernels that run one after the other: each may read what those before it store.

    kernels: with the axes to cut into blocks
    """
    # The operating system's entropy: numpy's SeedSequence() reads it by the `secrets` module.
    rng = np.random.default_rng(np.random.SeedSequence(seed))
    cut = [(block, grid_axes(block) if grid is None else tuple(grid)) for block, grid in kernels]
    blocks = [block for block, _ in cut]
    lax, unlax_reason = laxness(program.ops, *(block.ops for block in blocks))
    tested: list[Mapping[str, int]] = []
    total = 0
    maxima = any(op.kind in (Kind.MAX, Kind.AMAX) for ops in (program.ops, *(b.ops for b in blocks)) for op in ops)
    repetitions = REPETITIONS_OF_MAXIMA if maxima else REPETITIONS
    try:
        _check_borders(program, blocks)
        small, large = assignments(program, cut)
        for assignment in (small, large):
            tested.append(_named_sizes(program, blocks, assignment))
            total += repetitions
            rejected = _Case(program, cut, assignment).test(rng, repetitions)
            if rejected is not None:
                return Verdict(False, rejected.reason, lax, repetitions=total, sizes=tuple(tested))
        _check_masks(program, blocks)
        if takes_roots(blocks):
            nowhere = _Case(program, cut, small).without_number(rng)
            if nowhere is not None:
                reason = f"{nowhere} takes the root of a negative number where the program does not"
                return Verdict(False, reason, lax, repetitions=total, sizes=tuple(tested))
        if not lax:
            note = f"{unlax_reason}; the tests say equal, but no theorem bounds their error"
            return Verdict(True, None, lax, total, tuple(tested), bound_note=note)
        return _until_bound(_Case(program, cut, small), rng, total, tuple(tested))
    except Malformed as error:
        return Verdict(False, str(error), lax, repetitions=total, sizes=tuple(tested))


def verify_schedule(program: TensorProgram, block: BlockGraph, schedule: Schedule, seed: int | None = None) -> Verdict:
    """One random test at the sizes the program has, executing the schedule's own tiles (protocol, step 3). Its cost is
    that of the program in int64; the caller chooses the sizes."""
    return verify_schedules(program, [(block, schedule)], seed)


def verify_schedules(
    program: TensorProgram, kernels: Sequence[tuple[BlockGraph, Schedule]], seed: int | None = None
) -> Verdict:
    """As verify_schedule, for kernels that run one after the other."""
    rng = np.random.default_rng(np.random.SeedSequence(seed))
    blocks = [block for block, _ in kernels]
    lax, _ = laxness(program.ops, *(block.ops for block in blocks))
    try:
        _check_borders(program, blocks)
        rejected = compare(program, kernels, rng, 1)
    except Malformed as error:
        rejected = Rejected(str(error))
    note = "one test of the indexing at these sizes, no bound"
    sizes = (dict(program.sizes),)
    return Verdict(
        rejected is None, rejected.reason if rejected else None, lax, repetitions=1, sizes=sizes, bound_note=note
    )


def laxness(*graphs: Sequence[Op]) -> tuple[bool, str | None]:
    """Whether all graphs are in the Lax fragment, and if not, why."""
    for ops in graphs:
        exps: dict[str, int] = {}
        for op in ops:
            if op.kind in (Kind.MAX, Kind.AMAX) or (op.kind is Kind.UNARY and op.fn != "silu"):
                return False, f"{op.fn or op.kind} is outside the Lax fragment"
            exps[op.name] = max((exps.get(name, 0) for name in op.inputs), default=0) + (op.kind is Kind.EXP)
            if exps[op.name] > 1:
                return False, f"{op.name} is a second exponential on its path"
    return True, None


def compare(
    program: TensorProgram,
    kernels: Sequence[tuple[BlockGraph, Schedule]],
    rng: np.random.Generator,
    repetitions: int,
) -> Rejected | None:
    """Test with this many random seeds. Raises Malformed."""
    with_q = any(op.kind is Kind.EXP for ops in (program.ops, *(block.ops for block, _ in kernels)) for op in ops)
    return compare_with(
        program, lambda inputs, field: execute_kernels(kernels, inputs, field), with_q, rng, repetitions
    )


def compare_with(
    program: TensorProgram, candidate: Candidate, with_q: bool, rng: np.random.Generator, repetitions: int
) -> Rejected | None:
    """Test any computation of output tensors from input tensors; seeds that divide by zero are replaced by others.
    Raises Malformed."""
    left = repetitions
    for _ in range(_DRAWS):
        field = FieldArithmetic(rng, left, with_q)
        inputs = draw_inputs(program, field, rng)
        reference = evaluate_program(program, inputs, field)
        # A zero denominator rejects the seed, whichever side met it: the number of draws bounds how often.
        rejected = _differences(reference, candidate(inputs, field), field)
        if rejected is not None:
            return rejected
        left -= int(field.valid.sum())
        if left <= 0:
            return None
    return Rejected("it divides by zero at random inputs, again and again")


def _differences(
    reference: Mapping[str, FieldValue], candidate: Mapping[str, FieldValue], field: FieldArithmetic
) -> Rejected | None:
    for name, value in reference.items():
        if name not in candidate:
            return Rejected(f"{name} is never written")
        wrong = field.differs(value, candidate[name]) & field.valid
        if wrong.any():
            count = f"{int(wrong.sum())} of {int(field.valid.sum())}"
            return Rejected(f"{name} differs from the program's in {count} random tests")
    return None


class _Case:
    """The program and the block graphs at one assignment of sizes."""

    def __init__(
        self, program: TensorProgram, cut: Sequence[tuple[BlockGraph, Sequence[str]]], assignment: Assignment
    ) -> None:
        self.program = resize(program, assignment.sizes)
        self.kernels = [
            (resize_block(block, assignment.sizes), assignment.schedule(block, grid)) for block, grid in cut
        ]

    def test(self, rng: np.random.Generator, repetitions: int) -> Rejected | None:
        return compare(self.program, self.kernels, rng, repetitions)

    def without_number(self, rng: np.random.Generator) -> str | None:
        return without_number(self.program, self.kernels, rng)


def _until_bound(case: _Case, rng: np.random.Generator, done: int, sizes: tuple[Mapping[str, int], ...]) -> Verdict:
    """Repeat at the smaller sizes until Theorem 2's bound is met, if it can be."""
    try:
        bound = earned_bound(case.program, case.kernels, rng)
        needed = bound.repetitions(TARGET)
    except Unbounded as reason:
        return Verdict(True, None, True, done, sizes, bound_note=str(reason))
    missing = needed - REPETITIONS
    rejected = case.test(rng, missing) if missing > 0 else None
    done += max(0, missing)
    if rejected is not None:
        return Verdict(False, rejected.reason, True, done, sizes)
    note = f"for the first of the sizes (k = {bound.terms}, d = {bound.degree}, {max(needed, REPETITIONS)} seeds)"
    opaque = any(op.kind is Kind.UNARY for op in case.program.ops)
    if opaque:
        note += "; silu taken as a random function"
    return Verdict(True, None, True, done, sizes, bound.after(max(needed, REPETITIONS)), note)


def _check_borders(program: TensorProgram, blocks: Sequence[BlockGraph]) -> None:
    wanted = {tensor.name for tensor in program.outputs.values()}
    stored = {tensor.name for block in blocks for tensor in block.outputs}
    read_again = {tensor.name for block in blocks[1:] for tensor in block.inputs}
    if not wanted <= stored <= wanted | read_again:
        raise Malformed(f"the program's outputs are {sorted(wanted)}, the graph stores {sorted(stored)}")
    known = {tensor.name for tensor in program.tensors}
    for block in blocks:
        for tensor in block.inputs:
            if tensor.name not in known:
                raise Malformed(f"the graph reads {tensor.name}, which is no input of the program")
        known |= {tensor.name for tensor in block.outputs}


def _check_masks(program: TensorProgram, blocks: Sequence[BlockGraph]) -> None:
    """The graphs' masks must be the program's: at other sizes two diagonals may have become one."""
    known = {(extents(op, program.sizes), op.value) for op in program.ops if op.kind is Kind.MASK}
    for block in blocks:
        for op in block.ops:
            if op.kind is Kind.MASK and (extents(op, block.sizes), op.value) not in known:
                raise Malformed(f"{op.name} starts at diagonal {diagonal(op)}, where no mask of the program does")


def _named_sizes(program: TensorProgram, blocks: Sequence[BlockGraph], assignment: Assignment) -> dict[str, int]:
    return {axis: assignment.sizes[axis] for axis in sorted({*program.sizes, *(a for b in blocks for a in b.sizes)})}
