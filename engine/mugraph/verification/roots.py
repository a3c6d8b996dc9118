"""Roots of negative numbers. The fields do not see them: there `sqrt(x) sqrt(x)` is `sqrt(x x)` for every x.

Wherever the program has a number, a graph may take roots only of what is known not to be negative (signs.py).
"""

from __future__ import annotations

from collections.abc import Collection, Mapping, Sequence

import numpy as np

from mugraph.ir.block import BlockGraph, Schedule
from mugraph.ir.program import TensorProgram
from mugraph.verification.evaluate import arguments_of, evaluate_values
from mugraph.verification.execute import execute_kernels
from mugraph.verification.field import FieldArithmetic, FieldValue
from mugraph.verification.inputs import draw_inputs
from mugraph.verification.signs import SignArithmetic, Signed

_SEEDS = 32
_DRAWS = 4
_FEW = 2  # seeds, by which equal factors are known


def takes_roots(blocks: Sequence[BlockGraph]) -> bool:
    return any("sqrt" in op.kind.primitives for block in blocks for op in block.ops)


def has_unknown_roots(
    program: TensorProgram,
    kernels: Sequence[tuple[BlockGraph, Schedule]],
    rng: np.random.Generator,
    by_form: Collection[str] = frozenset(),
) -> bool:
    """Do the kernels, at these sizes, take a root of what may be negative where the program's roots are not? Raises
    Malformed."""
    graphs = (program.ops, *(block.ops for block, _ in kernels))
    with_q = any("exp" in op.kind.primitives for ops in graphs for op in ops) or bool(by_form)
    few = FieldArithmetic(rng, _FEW, with_q, by_form)
    made = SignArithmetic(few, np.zeros(_FEW, np.bool_))
    _execute(kernels, draw_inputs(program, few, rng, of_squares=False), made)
    if not made.unknown:  # by what they are made of: most are sums of squares
        return False
    roots = arguments_of(program.ops, "sqrt")
    for _ in range(_DRAWS):
        field = FieldArithmetic(rng, _SEEDS, with_q, by_form)
        inputs = draw_inputs(program, field, rng)
        counted = field.valid.copy()
        values = evaluate_values(program, inputs, field, roots)
        signs = SignArithmetic(field, counted, [values[name].p for name in roots])
        _execute(kernels, inputs, signs)
        if not signs.unknown:
            return False
    return True


def _execute(
    kernels: Sequence[tuple[BlockGraph, Schedule]], inputs: Mapping[str, FieldValue], signs: SignArithmetic
) -> None:
    execute_kernels(kernels, {name: Signed(value, False) for name, value in inputs.items()}, signs)
