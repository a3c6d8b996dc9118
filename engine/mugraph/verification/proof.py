"""Is it proved that block graphs, run one after the other, are the same function as the program? For all real inputs,
not for random ones: by exact expressions.

What is shown. The program, and the kernels with their grids, loops and masks, are run at small sizes (sizes.py: the
first of the two that the tests over finite fields take) with a variable for each input element. So each element of an
output is an exact expression of the inputs, in a normal form by laws that hold for real numbers (expressions.py). Where
the two expressions of every output element are equal, the two are one function at these sizes, wherever both are
defined: `y * y / y` is y. (That a kernel divides by nothing that may be zero where the program does not is tested by
reals.py, not proved.) That is no matter of chance: no random number has a part in it.

What is not shown. Sizes other than these; the tests over the fields, and that of the schedule's indexing at full size,
cover those as they do for any graph. Rounding, overflow, infinities and NaN, which are not real numbers. The text of
the kernels, which has checks of its own.

A program of sums, products and quotients is decided: two fractions of polynomials over the rationals are equal for all
inputs if, and only if, multiplying out shows it. With functions (exp, sqrt, maxima, erf, a function of which nothing is
known) the laws are sound and not complete: "not proved" never means that the graph is wrong.

Constants stand for what verification takes them for (constants.py): 0.1 for 1/10. Where constants belong to the sizes
that are summed over, sums weigh as much as at full size (weights.py).
"""

from __future__ import annotations

from collections.abc import Collection, Mapping, Sequence

from mugraph.ir.block import BlockGraph, Schedule
from mugraph.ir.program import TensorProgram
from mugraph.ir.transforms.resizing import resize, resize_block
from mugraph.verification.evaluate import Malformed, evaluate_program
from mugraph.verification.exact import Elements, ExactArithmetic
from mugraph.verification.execute import execute_kernels
from mugraph.verification.expressions import Expressions
from mugraph.verification.inputs import homes
from mugraph.verification.mask_sizes import check_masks
from mugraph.verification.polynomials import Unproved, Work
from mugraph.verification.sizes import assignments, grid_axes
from mugraph.verification.verdict import Proof
from mugraph.verification.weights import belongs_to_sizes, weighted, weighted_block

STEPS, TERMS = 200_000, 2_000
"""What a proof may take: products and sums of two terms in all, about a second; terms of one expression."""

Kernels = Sequence[tuple[BlockGraph, Schedule]]


def prove(
    program: TensorProgram,
    kernels: Sequence[tuple[BlockGraph, Sequence[str] | None]],
    single: Collection[str] = (),
) -> Proof:
    """kernels, single: as verifier.verify_topologies takes them. Never raises for a wrong or malformed graph."""
    cut = [(block, grid_axes(block) if grid is None else tuple(grid)) for block, grid in kernels]
    graphs = [program.ops, *(block.ops for block, _ in cut)]
    sizes: Mapping[str, int] = {}
    reason = "the laws that are known do not show that the outputs are equal"
    try:
        check_masks(program, [block for block, _ in cut])
        small, _ = assignments(program, cut, single)
        sizes = {axis: small.sizes[axis] for axis in sorted({*program.sizes, *(a for b, _ in cut for a in b.sizes)})}
        own = resize(program, small.sizes)
        blocks = [(resize_block(block, small.sizes), small.schedule(block, grid)) for block, grid in cut]
        if _is_equal(own, blocks):
            return Proof(True, sizes, "exact expressions of the inputs, by laws that hold for real numbers")
        if belongs_to_sizes(*graphs):
            heavy = [
                (weighted_block(block, full.sizes), schedule)
                for (block, schedule), (full, _) in zip(blocks, cut, strict=True)
            ]
            if _is_equal(weighted(own, program.sizes), heavy):
                note = "exact expressions of the inputs, sums weighing as much as at full size"
                return Proof(True, sizes, note)
    except (Malformed, Unproved) as error:
        reason = str(error)
    return Proof(False, sizes, reason)


def _is_equal(program: TensorProgram, kernels: Kernels) -> bool:
    """Raises Malformed and Unproved."""
    expressions = Expressions(Work(STEPS, TERMS))
    arithmetic = ExactArithmetic(expressions)
    home = homes(program)
    own = {name: arithmetic.variables(program.tensor(name).shape(program.sizes)) for name in sorted(set(home.values()))}
    inputs = {name: own[owner] for name, owner in home.items()}
    wanted = evaluate_program(program, inputs, arithmetic)
    found = execute_kernels(kernels, inputs, arithmetic)
    return all(name in found and _are_equal(value, found[name], expressions) for name, value in wanted.items())


def _are_equal(one: Elements, other: Elements, expressions: Expressions) -> bool:
    if one.shape != other.shape:
        return False
    pairs = zip(one.reshape(-1).tolist(), other.reshape(-1).tolist(), strict=True)
    return all(expressions.equal(a, b) for a, b in pairs)
