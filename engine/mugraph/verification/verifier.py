"""Are block graphs, run one after the other, the same function as the program? Random tests over finite fields
(Mirage §5.2)."""

from __future__ import annotations

import secrets
from collections.abc import Collection, Mapping, Sequence
from dataclasses import replace

import numpy as np

from mugraph.ir.block import BlockGraph, Schedule
from mugraph.ir.lax import why_not_lax
from mugraph.ir.ops import Op
from mugraph.ir.parts import in_whole_parts
from mugraph.ir.program import TensorProgram
from mugraph.ir.transforms.resizing import resize, resize_block
from mugraph.ops.functions.by_erf import taken_by_erf
from mugraph.ops.functions.by_sign import BY_SIGN, ORDER, has_maxima, taken_by_sign
from mugraph.ops.functions.through_exp import SIGMOID, is_below_exp, used
from mugraph.verification.bound import earned_bound
from mugraph.verification.compare import Functions, Rejected, compare
from mugraph.verification.evaluate import Malformed
from mugraph.verification.forms import Unbounded
from mugraph.verification.mask_sizes import check_masks
from mugraph.verification.order import REPETITIONS_OF_MAXIMA
from mugraph.verification.ordered import REPETITIONS_BY_REALS
from mugraph.verification.reals import unlike
from mugraph.verification.roots import has_unknown_roots, takes_roots
from mugraph.verification.sizes import Assignment, assignments, grid_axes
from mugraph.verification.verdict import Verdict
from mugraph.verification.weights import belongs_to_sizes, weighted, weighted_block

REPETITIONS = 4
"""Seeds at each of the two sizes where Theorem 2 gives no bound to reach."""
TARGET = 1e-9
"""The probability of accepting a wrong graph that is aimed at where Theorem 2 applies."""
_SEED_BITS = 48


def verify_topology(
    program: TensorProgram, block: BlockGraph, seed: int | None = None, grid: Sequence[str] | None = None
) -> Verdict:
    """Compare a topology with the program at two scaled-down sizes, tile by tile.

    seed: of an earlier verdict, to repeat it; None takes a fresh one from the operating system
    grid: axes to cut into blocks; None takes all that can be (sizes.grid_axes)
    Never raises for a wrong or malformed graph: the verdict says what is wrong.
    """
    return verify_topologies(program, [(block, grid)], seed)


def verify_topologies(
    program: TensorProgram,
    kernels: Sequence[tuple[BlockGraph, Sequence[str] | None]],
    seed: int | None = None,
    *,
    single: Collection[str] = (),
) -> Verdict:
    """As verify_topology, for kernels that run one after the other: each may read what those before it store.

    kernels: with the axes to cut into blocks
    single: axes of which no block and no iteration ever takes more than one element

    First as graphs that are equal whatever their functions and sizes are, which costs least; where they are not, with
    sigmoid, tanh, silu and GELU as what they are made of (through_exp.py) and relu and maxima by signs (by_sign.py) or
    by the order of real numbers (ordered.py); then with sums that weigh as much as at full size (weights.py).
    """
    seed = fresh_seed() if seed is None else seed
    rng = np.random.default_rng(np.random.SeedSequence(seed))
    cut = [(block, grid_axes(block) if grid is None else tuple(grid)) for block, grid in kernels]
    blocks = [block for block, _ in cut]
    ways = [(functions, False) for functions in known_functions(program, blocks)]
    if belongs_to_sizes(program.ops, *(block.ops for block in blocks)):
        ways += [(functions, True) for functions, _ in ways[1:] or ways]
    verdict = Verdict(False, None)
    for functions, as_at_full_size in ways:
        verdict = _verify(program, cut, rng, functions, as_at_full_size=as_at_full_size, single=single)
        if verdict.passed:
            break
    return replace(verdict, seed=seed)


def fresh_seed() -> int:
    """A seed from the operating system: a number that JSON keeps as it is, in any language."""
    return secrets.randbits(_SEED_BITS)


def _verify(
    program: TensorProgram,
    cut: Sequence[tuple[BlockGraph, Sequence[str]]],
    rng: np.random.Generator,
    by_form: Functions,
    *,
    as_at_full_size: bool = False,
    single: Collection[str] = (),
) -> Verdict:
    blocks = [block for block, _ in cut]
    lax, unlax_reason = laxness(program.ops, *(block.ops for block in blocks))
    tested: list[Mapping[str, int]] = []
    total = 0
    maxima = any(op.kind.chooses for ops in (program.ops, *(b.ops for b in blocks)) for op in ops)
    repetitions = REPETITIONS_OF_MAXIMA if maxima or by_form & BY_SIGN else REPETITIONS
    repetitions = REPETITIONS_BY_REALS if ORDER in by_form else repetitions
    try:
        check_kernels(program, blocks)
        small, large = assignments(program, cut, single)
        for assignment in (small, large):
            tested.append(_named_sizes(program, blocks, assignment))
            total += repetitions
            rejected = _Case(program, cut, assignment, by_form, as_at_full_size).test(rng, repetitions)
            if rejected is not None:
                return Verdict(False, rejected.reason, lax, repetitions=total, sizes=tuple(tested))
        check_masks(program, blocks)
        case = _Case(program, cut, small, by_form, as_at_full_size)
        reason = case.unlike(rng)
        if reason is not None:
            return Verdict(False, reason, lax, repetitions=total, sizes=tuple(tested))
        if not lax:
            note = f"{unlax_reason}; the tests say equal, but no theorem bounds their error"
            return Verdict(True, None, lax, total, tuple(tested), bound_note=note)
        return _until_bound(case, rng, total, tuple(tested))
    except Malformed as error:
        return Verdict(False, str(error), lax, repetitions=total, sizes=tuple(tested))


def known_functions(program: TensorProgram, blocks: Sequence[BlockGraph]) -> list[Functions]:
    """What may be known of the functions in the graphs: first nothing, then all there is, for graphs that are not equal
    whatever the functions are."""
    graphs = (program.ops, *(block.ops for block in blocks))
    functions = used(*graphs)
    by_exp = functions - {SIGMOID} if not functions or is_below_exp(*graphs) else functions | {SIGMOID}
    known = by_exp | taken_by_erf(*graphs) | taken_by_sign(*graphs)
    ways = [Functions(), known] if known else [Functions()]
    return [*ways, known | {ORDER}] if has_maxima(*graphs) else ways


def verify_schedule(program: TensorProgram, block: BlockGraph, schedule: Schedule, seed: int | None = None) -> Verdict:
    """One random test at the sizes the program has, executing the schedule's own tiles. Its cost is
    that of the program in int64; the caller chooses the sizes."""
    return verify_schedules(program, [(block, schedule)], seed)


def verify_schedules(
    program: TensorProgram, kernels: Sequence[tuple[BlockGraph, Schedule]], seed: int | None = None
) -> Verdict:
    """As verify_schedule, for kernels that run one after the other."""
    rng = np.random.default_rng(np.random.SeedSequence(seed))
    program, kernels = in_whole_parts(program, kernels)
    blocks = [block for block, _ in kernels]
    lax, _ = laxness(program.ops, *(block.ops for block in blocks))
    try:
        check_kernels(program, blocks)
        rejected = None
        for functions in known_functions(program, blocks):
            rejected = compare(program, kernels, rng, 1, functions, once=True)
            if rejected is None:
                break
    except Malformed as error:
        rejected = Rejected(str(error))
    note = "one test of the indexing at these sizes, no bound"
    sizes = (dict(program.sizes),)
    return Verdict(
        rejected is None, rejected.reason if rejected else None, lax, repetitions=1, sizes=sizes, bound_note=note
    )


def laxness(*graphs: Sequence[Op]) -> tuple[bool, str | None]:
    """Whether all graphs are in the Lax fragment, and if not, why."""
    reason = next((why for why in map(why_not_lax, graphs) if why is not None), None)
    return reason is None, reason


class _Case:
    """The program and the block graphs at one assignment of sizes."""

    def __init__(
        self,
        program: TensorProgram,
        cut: Sequence[tuple[BlockGraph, Sequence[str]]],
        assignment: Assignment,
        by_form: Functions,
        as_at_full_size: bool,
    ) -> None:
        self.by_form = by_form
        self.program = resize(program, assignment.sizes)
        self.kernels = [
            (resize_block(block, assignment.sizes), assignment.schedule(block, grid)) for block, grid in cut
        ]
        if as_at_full_size:
            self.program = weighted(self.program, program.sizes)
            self.kernels = [
                (weighted_block(small, block.sizes), schedule)
                for (small, schedule), (block, _) in zip(self.kernels, cut, strict=True)
            ]

    def test(self, rng: np.random.Generator, repetitions: int) -> Rejected | None:
        return compare(self.program, self.kernels, rng, repetitions, self.by_form)

    def unlike(self, rng: np.random.Generator) -> str | None:
        """What the fields do not see, in a sentence."""
        reason = unlike(self.program, self.kernels, rng)
        if reason is not None or not takes_roots([block for block, _ in self.kernels]):
            return reason
        unknown = has_unknown_roots(self.program, self.kernels, rng, self.by_form)
        return "it takes the root of what may be negative where the program does not" if unknown else None


def _until_bound(case: _Case, rng: np.random.Generator, done: int, sizes: tuple[Mapping[str, int], ...]) -> Verdict:
    """Repeat at the smaller sizes until Theorem 2's bound is met, if it can be."""
    try:
        bound = earned_bound(case.program, case.kernels, rng, case.by_form, TARGET)
        needed = bound.repetitions(TARGET)
    except Unbounded as reason:
        return Verdict(True, None, True, done, sizes, bound_note=str(reason))
    missing = needed - REPETITIONS
    rejected = case.test(rng, missing) if missing > 0 else None
    done += max(0, missing)
    if rejected is not None:
        return Verdict(False, rejected.reason, True, done, sizes)
    note = f"k = {bound.terms}, d = {bound.degree}, {max(needed, REPETITIONS)} seeds"
    functions = {op.fn or op.kind.name for op in case.program.ops if op.fn or op.kind.opaque}
    opaque, known = sorted(functions - case.by_form), sorted(functions & case.by_form)
    if opaque:
        note += f"; {', '.join(opaque)} taken as a random function"
    if known:
        note += f"; {', '.join(known)} by what it is made of"
    return Verdict(True, None, True, done, sizes, bound.after(max(needed, REPETITIONS)), note)


def check_kernels(program: TensorProgram, blocks: Sequence[BlockGraph]) -> None:
    """What is read is there, what is to be stored is stored, nothing else is. Raises Malformed."""
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


def _named_sizes(program: TensorProgram, blocks: Sequence[BlockGraph], assignment: Assignment) -> dict[str, int]:
    return {axis: assignment.sizes[axis] for axis in sorted({*program.sizes, *(a for b in blocks for a in b.sizes)})}
