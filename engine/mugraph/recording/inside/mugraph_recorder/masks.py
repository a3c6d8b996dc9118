"""Whether a tensor that a module keeps is a mask: the same two numbers on either side of a diagonal.

Its numbers are looked at once, when a picture is made. Only zero, one, and numbers that stand for minus infinity are
told; a buffer of anything else was learnt, or is data.
"""

from __future__ import annotations

from typing import Any

MOST_ELEMENTS = 1 << 24
_NEVER = -10_000.0
"""What is added to a score that is not to count: this or less."""


def triangle(tensor: Any, torch: Any) -> list[float | int | None] | None:
    """The diagonal, the number up to it in each row, the number above it (None: minus infinity); None for no mask."""
    if tensor.dim() < 2 or not 0 < tensor.numel() <= MOST_ELEMENTS or tensor.is_complex() or min(tensor.shape[-2:]) < 2:
        return None
    if tensor.device.type not in ("cpu", "cuda") or (tensor.is_cuda and torch.cuda.is_current_stream_capturing()):
        return None
    with torch.no_grad(), torch._C.DisableTorchFunction():
        matrices = tensor.detach().reshape(-1, *tensor.shape[-2:])
        matrix = matrices[0]
        below, above = float(matrix[-1, 0]), float(matrix[0, -1])
        if below == above or not (_is_told(below) and _is_told(above)):
            return None
        is_below = matrix == matrix[-1, 0]
        counts = is_below.sum(1)
        first = int((counts > 0).to(torch.int8).argmax())
        diagonal = int(counts[first]) - 1 - first
        expected = torch.ones_like(is_below).tril(diagonal)
        same = torch.equal(is_below, expected) and bool((matrix == matrix[0, -1])[~expected].all())
        if not same or (len(matrices) > 1 and not bool((matrices == matrix).all())):
            return None
    return [diagonal, *(None if number == -float("inf") else number for number in (below, above))]


def _is_told(number: float) -> bool:
    return number in (0.0, 1.0) or number <= _NEVER
