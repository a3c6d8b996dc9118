"""A function of single numbers of which nothing is known but that equal arguments give equal results."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

Floats = NDArray[np.float64]


@dataclass(frozen=True)
class Opaque:
    """What the passes ask of such a function besides what they ask of any kind.

    numbers: the function itself, on float64 arrays
    names:   PyTorch's, the usual one first, of functions in torch and of Tensor's methods: "atan2", "arctan2"
    reference: where there is no such name, the function as an expression in torch of its operands {0} and {1}
    is_truth:  it is a condition: PyTorch's result is of type bool, which here is 1 or 0
    is_positive: it has a value for positive arguments only (or nearly so), with which it is tested
    undoes_exp: of a product with an exponential it is a sum with the exponent
    vanishes: it is 0 where an operand is, as a product is
    hides:    it is minus infinity where its first operand is 0, elsewhere its second one
    passes_over: a kernel may have a number where PyTorch, which computes with what is hidden, has none
    jumps:    it is constant but for jumps: its result is exact, and where it jumps a rounding of the argument decides
    stored:   its results are the numbers of this type (ir/dtypes.py); "" of any other function
    has_nan_beyond: beyond the largest number of that type they are NaN, else infinite
    """

    numbers: Callable[..., Floats]
    names: tuple[str, ...]
    reference: str = ""
    is_truth: bool = False
    is_positive: bool = False
    undoes_exp: bool = False
    vanishes: bool = False
    hides: bool = False
    passes_over: bool = False
    jumps: bool = False
    stored: str = ""
    has_nan_beyond: bool = False

    @property
    def targets(self) -> tuple[str, ...]:
        """The calls that are the function (targets of ir.calls.Call), also those that write their first operand."""
        named = [name for name in self.names if not name.startswith("__")]
        spelled = [one for name in named for one in (name, f"{name}_")]
        operators = [f"Tensor.{name}" for name in self.names if name not in named]
        return (*(f"{owner}.{name}" for owner in ("torch", "Tensor") for name in spelled), *operators)
