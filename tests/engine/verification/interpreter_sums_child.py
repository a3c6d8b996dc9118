"""Sums of a tile along each of its axes in Triton's interpreter: how far they are from float64, and their shapes."""

from __future__ import annotations

import json
from typing import Any

import torch
import triton
import triton.language as tl
from mugraph.verification.interpreter import patch_interpreter

ROWS, COLUMNS = 4096, 4


@triton.jit
def along(x_ptr: Any, y_ptr: Any, ROWS: tl.constexpr, COLUMNS: tl.constexpr, AXIS: tl.constexpr, KEPT: tl.constexpr):
    rows, columns = tl.arange(0, ROWS), tl.arange(0, COLUMNS)
    x = tl.load(x_ptr + rows[:, None] * COLUMNS + columns[None, :])
    summed = tl.sum(x, axis=AXIS, keep_dims=KEPT)
    if KEPT:
        tl.store(y_ptr + rows[:, None] * COLUMNS + columns[None, :], x - x + summed)
    else:
        tl.store(y_ptr + tl.arange(0, COLUMNS if AXIS == 0 else ROWS), summed)


def off(axis: int, kept: bool) -> float:
    """The root mean square error, over that of the sums."""
    x = torch.randn(ROWS, COLUMNS, generator=torch.Generator().manual_seed(axis)) + 1
    shape = (ROWS, COLUMNS) if kept else x.sum(axis).shape
    y = torch.full(shape, torch.nan)
    along[(1,)](x, y, ROWS=ROWS, COLUMNS=COLUMNS, AXIS=axis, KEPT=kept)
    exact = x.double().sum(axis, keepdim=kept).expand(shape)
    return float((y.double() - exact).square().mean().sqrt() / exact.square().mean().sqrt())


if __name__ == "__main__":
    patch_interpreter()
    print(json.dumps([off(axis, kept) for axis in (0, 1) for kept in (False, True)]))
