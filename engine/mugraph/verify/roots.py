"""Roots of negative numbers, which the fields do not see: there `sqrt(x) sqrt(x)` is `sqrt(x x)` for every x.

Real inputs of both signs do. Wherever the program has a number, so must what stands for it.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence

import numpy as np
from numpy.typing import NDArray

from mugraph.ir.block import BlockGraph, Schedule
from mugraph.ir.ops import Kind
from mugraph.ir.program import TensorProgram
from mugraph.verify.arithmetic import FloatArithmetic
from mugraph.verify.evaluate import evaluate_program
from mugraph.verify.execute import execute_kernels
from mugraph.verify.inputs import homes

_DRAWS = 4


def takes_roots(blocks: Sequence[BlockGraph]) -> bool:
    return any(op.kind is Kind.SQRT for block in blocks for op in block.ops)


def without_number(
    program: TensorProgram, kernels: Sequence[tuple[BlockGraph, Schedule]], rng: np.random.Generator
) -> str | None:
    """An output in which the kernels have no number where the program has one; None when there is none. At the sizes
    the program has, which the caller chooses. Raises Malformed."""
    arithmetic = FloatArithmetic()
    for _ in range(_DRAWS):
        inputs = _drawn(program, rng)
        with np.errstate(all="ignore"):
            reference = evaluate_program(program, inputs, arithmetic)
            found = execute_kernels(kernels, inputs, arithmetic)
        for name, value in reference.items():
            if name in found and bool((np.isfinite(value) & np.isnan(found[name])).any()):
                return name
    return None


def _drawn(program: TensorProgram, rng: np.random.Generator) -> Mapping[str, NDArray[np.float64]]:
    home = homes(program)
    drawn = {name: rng.standard_normal((1, *program.tensor(name).shape(program.sizes))) for name in home.values()}
    return {name: drawn[owner] for name, owner in home.items()}
