"""Is a tensor a constant with a triangle in it? Found by looking at its numbers."""

from __future__ import annotations

import math

import torch

from mugraph.ir.region import Triangle

MOST_ELEMENTS = 1 << 26
"""Larger tensors are not looked at."""


def triangle_of(tensor: torch.Tensor) -> Triangle | None:
    """What the last two dimensions hold, where all the others repeat it; None for other contents, for not-a-number and
    for plus infinity. A tensor of one number is a triangle as well: uniform."""
    if tensor.numel() == 0 or tensor.numel() > MOST_ELEMENTS or tensor.is_complex() or not _is_dense(tensor):
        return None
    rows, columns = tensor.shape[-2:] if tensor.dim() > 1 else (1, tensor.numel())
    matrices = tensor.detach().expand(tensor.shape).reshape(-1, rows, columns)
    matrix = matrices[0]
    below, above = matrix[-1, 0], matrix[0, -1]
    if bool((matrix == below).all()):
        diagonal, expected = columns - 1, matrix == below
        above = below
    elif tensor.dim() < 2:
        return None
    else:
        is_below = matrix == below
        counts = is_below.sum(1)
        first = int((counts > 0).to(torch.int8).argmax())
        diagonal = int(counts[first]) - 1 - first
        expected = torch.ones_like(is_below).tril(diagonal)
        if not torch.equal(is_below, expected) or not bool((matrix == above)[~expected].all()):
            return None
    if len(matrices) > 1 and not bool((matrices == matrix).all()):
        return None
    numbers = [float(value) for value in (below, above)]
    if any(math.isnan(number) or number == math.inf for number in numbers):
        return None
    low, high = (None if number == -math.inf else number for number in numbers)
    return Triangle(diagonal, low, high)


def _is_dense(tensor: torch.Tensor) -> bool:
    return tensor.layout == torch.strided and not tensor.is_quantized
