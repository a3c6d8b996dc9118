"""One random test of a computation against a program, over finite fields (Mirage §5.2)."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass

import numpy as np

from mugraph.ir.block import BlockGraph, Schedule
from mugraph.ir.ops import Kind
from mugraph.ir.program import TensorProgram
from mugraph.ops.by_sign import MAX
from mugraph.ops.through_exp import SIGMOID
from mugraph.verify.evaluate import evaluate_program
from mugraph.verify.execute import execute_kernels
from mugraph.verify.field import FieldArithmetic, FieldValue
from mugraph.verify.inputs import draw_inputs

_DRAWS = 8

Functions = frozenset[str]
"""Those that a test computes by their forms (ops/through_exp.py) or by signs (ops/by_sign.py)."""
Draw = Callable[[FieldArithmetic, np.random.Generator, bool], Mapping[str, FieldValue]]
"""Random values of the input tensors; whether the program's roots are to be roots of squares."""
Candidate = Callable[[Mapping[str, FieldValue], FieldArithmetic], Mapping[str, FieldValue]]
"""Input tensors -> (at least) output tensors."""


@dataclass(frozen=True)
class Rejected:
    """Why the graph is not the program."""

    reason: str


def compare(
    program: TensorProgram,
    kernels: Sequence[tuple[BlockGraph, Schedule]],
    rng: np.random.Generator,
    repetitions: int,
    by_form: Functions = frozenset(),
    draw: Draw | None = None,
) -> Rejected | None:
    """Test with this many random seeds. by_form: functions to be computed by their forms. draw: in place of
    `draw_inputs`. Raises Malformed."""
    kinds = {op.kind for ops in (program.ops, *(block.ops for block, _ in kernels)) for op in ops}
    with_q = SIGMOID in by_form or Kind.EXP in kinds
    signed = Kind.SQRT in kinds or MAX in by_form

    def candidate(inputs: Mapping[str, FieldValue], field: FieldArithmetic) -> Mapping[str, FieldValue]:
        return execute_kernels(kernels, inputs, field)

    return compare_with(program, candidate, with_q, rng, repetitions, by_form, signed, draw)


def compare_with(
    program: TensorProgram,
    candidate: Candidate,
    with_q: bool,
    rng: np.random.Generator,
    repetitions: int,
    by_form: Functions = frozenset(),
    signed: bool = True,
    draw: Draw | None = None,
) -> Rejected | None:
    """Test any computation of output tensors from input tensors; seeds that divide by zero are replaced by others.

    Where no inputs are found of which the program's roots are roots, any are taken: then a root is that of an absolute
    value in both, and what is equal is so all the more (inputs.py). Raises Malformed.
    """
    left = repetitions
    of_squares = True
    for _ in range(_DRAWS):
        field = FieldArithmetic(rng, left, with_q, by_form, signed)
        inputs = draw(field, rng, of_squares) if draw else draw_inputs(program, field, rng, of_squares=of_squares)
        if not field.valid.any():
            of_squares = False
            continue
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
