"""One random test of a computation against a program, over finite fields (Mirage §5.2)."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from mugraph.ir.block import BlockGraph, Schedule
from mugraph.ir.program import TensorProgram
from mugraph.ops.functions.by_sign import MAX, ORDER
from mugraph.ops.functions.through_exp import SIGMOID
from mugraph.verification.evaluate import evaluate_program
from mugraph.verification.execute import execute_kernels
from mugraph.verification.field import FieldArithmetic, FieldValue
from mugraph.verification.inputs import draw_inputs
from mugraph.verification.ordered import OrderedArithmetic, with_reals
from mugraph.verification.shown import TIMES, Shown, is_all_shown

_DRAWS = 8
_DRAWS_TO_SHOW = 3
"""Of all seeds, until every maximum was each of its values: in a tile of one row of four, a place wins in none of 32
seeds once in 2,500 draws."""

Functions = frozenset[str]
"""Functions that a test computes by their forms (ops/functions/through_exp.py) or by signs
(ops/functions/by_sign.py)."""
Draw = Callable[[FieldArithmetic, np.random.Generator, bool], Mapping[str, FieldValue]]
"""Draws random values of the input tensors. The flag: whether the program's roots are to be roots of squares."""
Results = Mapping[str, FieldValue]
Candidate = Callable[[Mapping[str, FieldValue], FieldArithmetic], Results]
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
    *,
    once: bool = False,
) -> Rejected | None:
    """Test with this many random seeds. by_form: functions to be computed by their forms. draw: in place of
    `draw_inputs`. once: for large graphs: maxima by the order of real numbers have to be shown (shown.py) only
    once, in as many tests as that takes. Raises Malformed."""
    graphs = (program.ops, *(block.ops for block, _ in kernels))
    primitives = {primitive for ops in graphs for op in ops for primitive in op.kind.primitives}
    with_q = SIGMOID in by_form or "exp" in primitives
    signed = "sqrt" in primitives or MAX in by_form

    runs: list[tuple[Shown, NDArray[np.bool_]]] = []

    def ordered(inputs: Mapping[str, FieldValue], field: FieldArithmetic) -> tuple[Results, Results]:
        run = Shown(of_rows=not once)
        reals, arithmetic = with_reals(program, inputs, graphs, rng), OrderedArithmetic(field, run)
        with np.errstate(all="ignore"):
            both = evaluate_program(program, reals, arithmetic), execute_kernels(kernels, reals, arithmetic)
        run.settle()
        runs.append((run, field.valid))
        one, other = ({name: found.value.value for name, found in results.items()} for results in both)
        return one, other

    if ORDER in by_form:
        for _ in range(_DRAWS if once else _DRAWS_TO_SHOW):
            rejected = _compare(program, ordered, with_q, rng, repetitions, by_form, signed, draw)
            if rejected is not None or is_all_shown(runs, 1 if once else TIMES):
                return rejected
        return Rejected("a maximum was the same of its values in every test")

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
    """Test any computation of output tensors from input tensors. Raises Malformed."""

    def both(inputs: Mapping[str, FieldValue], field: FieldArithmetic) -> tuple[Results, Results]:
        return evaluate_program(program, inputs, field), candidate(inputs, field)

    return _compare(program, both, with_q, rng, repetitions, by_form, signed, draw)


def _compare(
    program: TensorProgram,
    both: Callable[[Mapping[str, FieldValue], FieldArithmetic], tuple[Results, Results]],
    with_q: bool,
    rng: np.random.Generator,
    repetitions: int,
    by_form: Functions,
    signed: bool,
    draw: Draw | None,
) -> Rejected | None:
    """Seeds that divide by zero are replaced by others. both: the program's results and those that are tested

    Where no inputs are found at which the program's roots are roots of squares, any inputs are taken. Then a root
    is the root of an absolute value on both sides, and what is equal so is equal without it (inputs.py). Raises
    Malformed.
    """
    left = repetitions
    of_squares = True
    for _ in range(_DRAWS):
        field = FieldArithmetic(rng, left, with_q, by_form, signed)
        inputs = draw(field, rng, of_squares) if draw else draw_inputs(program, field, rng, of_squares=of_squares)
        if not field.valid.any():
            of_squares = False
            continue
        # A zero denominator rejects the seed, whichever side met it: the number of draws bounds how often.
        rejected = _differences(*both(inputs, field), field)
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
