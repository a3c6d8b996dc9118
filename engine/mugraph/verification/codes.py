"""Whether a kernel's results of eight bits are as right as the program allows: whole numbers and float8 ones.

Such a result is exact, or one step of its type off: there is no small error that a rounding explains. What is rounded
is the value before, and where that lies next to the middle between two numbers of the type its error decides which of
them it becomes. So an element may be another number than in float64 only if the program's own rounding errors, three
times as large as they are (as judge.py allows), make that number of it in one of some draws, of random signs and of
designed ones; or if PyTorch's roundings
do, or float32's. NaN counts as a number. And there may be no more such elements than three times as many as those
roundings make. Numbers exactly in the middle, of computations that round nothing (the scenario "ties"), are no matter
of errors: a kernel that takes the wrong one of two is wrong at more elements than PyTorch's own roundings are.

Of whole numbers PyTorch leaves undefined what becomes of NaN, which is not looked at.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

import torch
from torch import Tensor

from mugraph.ir.program import TensorProgram
from mugraph.verification.designed import DRAWS, Signs
from mugraph.verification.roundings import Perturbed

_TIMES = 3.0
"""How many times as large the errors of the draws are."""
_LOTS = (4, 12, DRAWS, 48)
"""Draws that are made, one lot after the other, while they do not explain an element: the signs of the third lot's
errors are designed."""
_DESIGNED = range(sum(_LOTS[:2]), sum(_LOTS[:3]))
_COUNTED = 3.0
_FEW, _SHARE = 4.0, 1 / 2000
"""Elements, and a part of all elements, that say nothing by their number."""


def errors_of(program: TensorProgram, generator: torch.Generator, number: int) -> Perturbed:
    """The errors of a draw, by its number."""
    signs = Signs(number - _DESIGNED.start) if number in _DESIGNED else None
    return Perturbed(program, generator, _TIMES, signs)


@dataclass(frozen=True)
class Codes:
    """One output of one run; float64 tensors of its shape.

    eager:  with eager PyTorch's roundings
    single: with those of a kernel that computes each operator in float32
    ties:   nothing is rounded before the output's own type, as a rule
    """

    result: Tensor
    exact: Tensor
    eager: Tensor
    single: Tensor
    dtype: torch.dtype
    ties: bool = False

    def trouble(self, drawn: Callable[[int], Tensor]) -> str | None:
        """What is wrong with the kernel's numbers; None if nothing is. drawn: the program's with random errors, by the
        number of the draw"""
        other = self._apart(self.result)
        count = int(other.sum())
        if not count:
            return None
        explained, most = self._explained(other, drawn)
        wrong = other & ~explained
        if bool(wrong.any()):
            at = [int(place) for place in wrong.nonzero()[0]] if wrong.dim() else []
            ours, exact = (float(one[tuple(at)]) for one in (self.result, self.exact))
            such = f"{int(wrong.sum())} of {wrong.numel()} elements"
            return f"is wrong: {ours:g} at {at} instead of {exact:g}; rounding does not explain {such}"
        allowed = _COUNTED * most + _FEW + _SHARE * other.numel()
        if count > allowed:
            return f"is wrong by a step at {count} elements, of which rounding explains {most:g}"
        return None

    def _explained(self, other: Tensor, drawn: Callable[[int], Tensor]) -> tuple[Tensor, float]:
        """Elements of which roundings may make the result; and how many they make other numbers of."""
        known = _Reached(self.exact)
        known.add(self.eager)
        known.add(self.single)
        most = float(max(int(self._apart(one).sum()) for one in (self.eager, self.single)))
        total, number, counted = 0, 0, 0
        for lot in _LOTS:
            explained = known.has(self.result)
            if not bool((other & ~explained).any()) and number:
                break
            for _ in range(lot):
                draw = drawn(number)
                known.add(draw)
                if number not in _DESIGNED:  # there all of them may be wrong on the same side
                    total += int(self._apart(draw).sum())
                    counted += 1
                number += 1
        return known.has(self.result), most if self.ties else max(most, total / counted)

    def _apart(self, values: Tensor) -> Tensor:
        same = (values == self.exact) | (values.isnan() & self.exact.isnan())
        return ~same if self.dtype.is_floating_point else ~same & torch.isfinite(self.exact)


class _Reached:
    """Numbers between which each element lies, and whether it may be NaN."""

    def __init__(self, first: Tensor) -> None:
        self._low, self._high = torch.full_like(first, torch.inf), torch.full_like(first, -torch.inf)
        self._none = torch.zeros_like(first, dtype=torch.bool)
        self.add(first)

    def add(self, values: Tensor) -> None:
        self._low = torch.minimum(self._low, values.nan_to_num(torch.inf, torch.inf, -torch.inf))
        self._high = torch.maximum(self._high, values.nan_to_num(-torch.inf, torch.inf, -torch.inf))
        self._none |= values.isnan()

    def has(self, values: Tensor) -> Tensor:
        return torch.where(values.isnan(), self._none, (values >= self._low) & (values <= self._high))
