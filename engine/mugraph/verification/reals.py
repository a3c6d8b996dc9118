"""Compares a graph with its program over the real numbers, at inputs chosen for signs and for divisions by zero.

The fields have neither order nor size. A quotient has a value wherever it can be reduced to one that has, so `x y / y`
is `x`; and numbers are equal if they are equal modulo P. In float64 that is not so. Wherever the program has a number,
the graph must have the same one up to rounding: for small and large inputs, positive and negative, shifted, with zeros
in single places, in whole rows and in whole tensors.

Nothing is asked where the program itself divides by zero, or leaves float64's range: a softmax gets its maximum when
its kernel is written. Rounding is judged by float_test.py, not here. So a number that is negative only by rounding has
the root 0, and results agree if they agree in three digits of the largest.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence

import numpy as np
from numpy.typing import NDArray

from mugraph.ir.block import BlockGraph, Schedule
from mugraph.ir.ops import Op
from mugraph.ir.program import TensorProgram
from mugraph.ops.functions.through_exp import CONSTANTS
from mugraph.verification.arithmetic import FloatArithmetic
from mugraph.verification.evaluate import evaluate_program
from mugraph.verification.execute import execute_kernels
from mugraph.verification.inputs import homes

Reals = NDArray[np.float64]

_ROUNDING = 1e-9
"""Of the largest element: what may be negative by rounding."""
_NEAR = 1e-3
"""Of the largest element."""
_GENTLE = tuple((scale, offset) for scale in (0.01, 1.0) for offset in (0.0, 2.0, -2.0))
"""Scales and offsets of inputs that stay in range under an exponential."""
_WIDE = (*_GENTLE, (1e-3, 0.0), (1e3, 0.0), (30.0, 100.0), (30.0, -100.0))


class TolerantArithmetic(FloatArithmetic):
    """float64, in which what is negative by rounding only has a root.

    in_range: [draws] False where an exponential was too large or too small for float64
    """

    def __init__(self, draws: int) -> None:
        self.in_range: NDArray[np.bool_] = np.ones(draws, np.bool_)

    def exp(self, a: Reals) -> Reals:
        power = np.exp(a)
        beyond = (power == 0) | np.isinf(power)
        self.in_range &= ~beyond.reshape(beyond.shape[0], -1).any(1)
        return power

    def sqrt(self, a: Reals) -> Reals:
        finite = np.where(np.isfinite(a), abs(a), 0.0)
        least = -_ROUNDING * finite.max(axis=tuple(range(1, a.ndim)), keepdims=True)
        return np.sqrt(np.where((a < 0) & (a >= least), 0.0, a))


def unlike(
    program: TensorProgram, kernels: Sequence[tuple[BlockGraph, Schedule]], rng: np.random.Generator
) -> str | None:
    """What is wrong with the kernels, at the sizes they have, in a sentence; None where nothing is seen. Raises
    Malformed."""
    inputs = _drawn(program, rng, _has_exponentials(program.ops, *(block.ops for block, _ in kernels)))
    arithmetic = TolerantArithmetic(len(next(iter(inputs.values()), ())))
    with np.errstate(all="ignore"):
        reference = evaluate_program(program, inputs, arithmetic)
        found = execute_kernels(kernels, inputs, arithmetic)
    for name, value in reference.items():
        if name not in found:
            continue
        other = found[name]
        defined = np.isfinite(value) & arithmetic.in_range.reshape((-1,) + (1,) * (value.ndim - 1))
        if bool((defined & ~np.isfinite(other)).any()):
            return f"{name} {_said(defined & np.isnan(other), kernels)} where the program does not"
        size = abs(np.where(defined, value, 0.0))
        largest = size.max(axis=tuple(range(1, size.ndim)), keepdims=True)
        with np.errstate(all="ignore"):
            wrong = defined & (abs(other - value) > _NEAR * largest)
        if bool(wrong.any()):
            return f"{name} differs from the program's at real inputs"
    return None


def _drawn(program: TensorProgram, rng: np.random.Generator, gentle: bool) -> Mapping[str, Reals]:
    """[draws, *tensor.shape], one draw after the other along the first position."""
    home = homes(program)
    names = sorted(set(home.values()))
    shapes = {name: program.tensor(name).shape(program.sizes) for name in names}
    draws: list[dict[str, Reals]] = []
    for scale, offset in _GENTLE if gentle else _WIDE:
        draws.append({name: offset + scale * rng.standard_normal(shapes[name]) for name in names})
    for change in (_with_zeros, _with_a_row_of_zeros, _with_a_peak):
        draws.append({name: change(rng.standard_normal(shapes[name]), rng) for name in names})
    for one in names:  # singled out: of zeros alone, and with a single zero
        for change in (_nothing, _with_a_zero):
            draws.append({name: rng.standard_normal(shapes[name]) for name in names})
            draws[-1][one] = change(draws[-1][one], rng)
    whole = {name: np.stack([draw[name] for draw in draws]) for name in names}
    return {name: whole[owner] for name, owner in home.items()}


def _has_exponentials(*graphs: Sequence[Op]) -> bool:
    return any("exp" in op.kind.primitives or op.fn in CONSTANTS for graph in graphs for op in graph)


def _said(missing: NDArray[np.bool_], kernels: Sequence[tuple[BlockGraph, Schedule]]) -> str:
    """What was done where there is no number. The first draws have no zeros to divide by."""
    has_roots = any("sqrt" in op.kind.primitives for block, _ in kernels for op in block.ops)
    return "takes the root of a negative number" if has_roots and missing[: len(_GENTLE)].any() else "divides by zero"


Change = Callable[[Reals, np.random.Generator], Reals]


def _nothing(x: Reals, rng: np.random.Generator) -> Reals:
    return np.zeros_like(x)


def _with_zeros(x: Reals, rng: np.random.Generator) -> Reals:
    return np.where(rng.random(x.shape) < 0.3, 0.0, x)


def _with_a_zero(x: Reals, rng: np.random.Generator) -> Reals:
    return _with(x, rng, 0.0)


def _with_a_peak(x: Reals, rng: np.random.Generator) -> Reals:
    return _with(x, rng, 20.0)


def _with_a_row_of_zeros(x: Reals, rng: np.random.Generator) -> Reals:
    changed = x.copy()
    if x.ndim and x.shape[0]:
        changed[rng.integers(x.shape[0])] = 0.0
    return changed


def _with(x: Reals, rng: np.random.Generator, value: float) -> Reals:
    changed = x.copy()
    if x.size:
        changed.reshape(-1)[rng.integers(x.size)] = value
    return changed
