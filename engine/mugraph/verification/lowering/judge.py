"""Is a program's value what the recorded calls gave, but for what rounding in the wide type explains?

First by a relative difference. Where that is too large, by what errors of the wide type do to the program (`Jittered`):
where terms cancel they are large, and where a condition is met exactly they decide it.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass

import torch
from torch import Tensor

from mugraph.ir.ops import Op
from mugraph.verification.lowering.calls import Wide
from mugraph.verification.torch_reference import Joined, OfResult, Value

RELATIVE = {"float64": 1e-9, "float32": 1e-5}
"""Of an element: a difference that is none."""
OF_ROW = {"float64": 1e-11, "float32": 3e-5}
"""Of the root mean square of its row: one that is none either."""
SPREADS = 8.0
"""How many times what the errors make of it an element may be off."""
DRAWS, MORE_DRAWS = 4, 12
KNOWN = 0.5
"""The part of an output that has to be known for the test to say anything."""
_ERROR = {"float64": 2.0**-44, "float32": 2.0**-18}
"""Relative error of each step: some hundred times that of a rounding, so that few draws show what many roundings do."""
_LOOSE = 1e-2
"""Of an element and of its kind: errors that are larger leave nothing to be told."""
_NOTHING = {"float64": 1e-9, "float32": 1e-4}
"""An absolute error that leaves enough to be told, where all numbers may be zero: those that are read are about 1."""
_KEPT = frozenset({"relu", "abs", "sign"})


class Jittered:
    """A way of rounding for torch_reference.evaluate: random relative errors of one size, up or down, of whatever is
    computed and of all that is summed. What is chosen or compared is as it is, and so are whole numbers: they are
    exact."""

    def __init__(self, wide: Wide, generator: torch.Generator) -> None:
        self._size, self._random = _ERROR[wide], generator

    def operand(self, op: Op, position: int, data: Tensor) -> Tensor:
        return self._wrong(data) if op.kind.adds else data

    def result(self, op: Op, operands: Sequence[Value], data: Tensor) -> Tensor:
        is_truth = op.kind.opaque is not None and op.kind.opaque.is_truth
        return data if op.kind.chooses or op.kind.jumps or is_truth or op.fn in _KEPT else self._wrong(data)

    def joined(self, op: Op) -> Joined:
        return OfResult(self, op)

    def _wrong(self, data: Tensor) -> Tensor:
        signs = torch.randint(0, 2, data.shape, generator=self._random, dtype=torch.int8).to(data.dtype)
        wrong = signs.mul_(2.0 * self._size).add_(1.0 - self._size).mul_(data)  # by 1 + size or 1 - size, exactly
        return torch.where(data == data.round(), data, wrong)


@dataclass(frozen=True)
class Judged:
    """
    trouble: what is wrong, in a clause; None if nothing is
    known:   the part of the elements that could be told
    error:   the largest difference of those, relative to the root mean square of all
    left:    all that is wrong is that the program's value is no number where the calls give one: it may have left the
             range, as a softmax does of which the program has no maximum
    """

    trouble: str | None
    known: float
    error: float = 0.0
    left: bool = False


def judge(found: Tensor, called: Tensor, wide: Wide, jittered: Callable[[], Tensor]) -> Judged:
    """
    found:    the program's value, float64
    called:   what the calls gave, float64, of the same shape
    jittered: the program's value with errors, other ones each time
    """
    finite = torch.isfinite(called)
    numbers = torch.where(finite, called, 0.0)
    size = max(float(numbers.square().mean().sqrt()), 1e-300)
    rows = numbers.square().mean(-1, keepdim=True).sqrt() if numbers.dim() else numbers
    told, allowed = torch.ones_like(finite), RELATIVE[wide] * numbers.abs() + OF_ROW[wide] * rows
    wrong = _wrong(found, called, allowed)
    # Few draws may all fall on one side of a condition: if it is a few elements, there are more.
    for draws in (DRAWS, MORE_DRAWS):
        if not bool(wrong.any()) or (draws == MORE_DRAWS and int(wrong.sum()) > wrong.numel() // 100 + 1):
            break
        for _ in range(draws):
            draw = jittered()
            told &= torch.isfinite(draw) == torch.isfinite(found)
            apart = torch.where(torch.isfinite(draw) & torch.isfinite(found), (draw - found).abs(), 0.0)
            allowed = torch.maximum(allowed, SPREADS * apart)
        told &= allowed <= (_LOOSE * numbers.abs().clamp_min(size)).clamp_min(_NOTHING[wide])
        wrong = told & _wrong(found, called, allowed)
    known = float((told & finite).double().mean())
    if bool(wrong.any()):
        left = not bool((wrong & (torch.isfinite(found) | ~finite)).any())
        return Judged(_words(found, called, wrong), known, left=left)
    apart = torch.where(told & finite, (found - called).abs(), 0.0)
    return Judged(None, known, float(apart.max()) / size)


def _wrong(found: Tensor, called: Tensor, allowed: Tensor) -> Tensor:
    """Where one is a number and the other is none, or they are too far apart, or infinite with other signs."""
    both = torch.isfinite(found) & torch.isfinite(called)
    far = both & ((found - called).abs() > allowed)
    return far | (torch.isfinite(found) != torch.isfinite(called)) | (torch.isinf(found) & (found == -called))


def _words(found: Tensor, called: Tensor, wrong: Tensor) -> str:
    count, apart = int(wrong.sum()), (found - called).abs().nan_to_num(nan=float("inf"))
    worst = int(torch.where(wrong, apart, -1.0).argmax())
    place = [int(at) for at in torch.unravel_index(torch.tensor(worst), wrong.shape)]
    ours, theirs = float(found.flatten()[worst]), float(called.flatten()[worst])
    many = "all its elements are" if count == wrong.numel() else f"{count} of {wrong.numel()} elements are"
    return f"{many} other numbers, at {place} {ours:.6g} where the calls give {theirs:.6g}"
