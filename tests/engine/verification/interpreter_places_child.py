"""Launches kernels in Triton's interpreter whose places follow from whole numbers in many ways, again and again with
other tensors and numbers, and prints which results are right and how much was computed."""

from __future__ import annotations

import json

import torch
import triton
import triton.language as tl
from mugraph.verification.interpreter import patch_interpreter
from torch import Tensor
from triton.runtime import interpreter

SIZE = 16


@triton.jit
def shifted(x_ptr, out_ptr, rows, columns, by, SIZE: tl.constexpr):
    row = tl.program_id(0)
    for first in range(0, columns, SIZE):
        at = first + tl.arange(0, SIZE)
        from_ = (at + by) % columns
        x = tl.load(x_ptr + row.to(tl.int64) * columns + from_, mask=(at < columns) & (row < rows), other=0.0)
        tl.store(out_ptr + row * columns + at, x * 2.0, mask=at < columns)


@triton.jit
def turned(x_ptr, out_ptr, rows, columns, SIZE: tl.constexpr):
    down, along = tl.arange(0, SIZE), tl.arange(0, SIZE)
    inside = (down[:, None] < rows) & (along[None, :] < columns)
    lower = down[:, None] >= along[None, :]
    x = tl.load(x_ptr + down[:, None] * columns + along[None, :], mask=inside & lower, other=-1.0)
    tl.store(out_ptr + along[None, :] * rows + down[:, None], x, mask=inside)


@triton.jit
def gathered(x_ptr, index_ptr, out_ptr, count, SIZE: tl.constexpr):
    at = tl.minimum(tl.arange(0, SIZE), count - 1)
    index = tl.load(index_ptr + at)
    first = tl.load(index_ptr)
    tl.store(out_ptr + at, tl.load(x_ptr + index) + tl.load(x_ptr + first + 0 * at))


def main() -> None:
    patch_interpreter()
    calls = 0
    binary = interpreter.InterpreterBuilder.binary_op

    def counted(*given: object) -> object:
        nonlocal calls
        calls += 1
        return binary(*given)

    interpreter.InterpreterBuilder.binary_op = counted
    right: dict[str, list[bool]] = {"shifted": [], "turned": [], "gathered": []}
    computed: list[int] = []
    kept: list[Tensor] = []  # so that no tensor lies where an earlier one did
    for rows, columns, by in ((3, 21, 4), (3, 21, 4), (2, 13, 4), (3, 21, 5), (3, 21, 4)):
        before, x = calls, torch.randn(rows, columns)
        out = torch.empty_like(x)
        shifted[(rows,)](x, out, rows, columns, by, SIZE=SIZE)
        right["shifted"].append(torch.equal(out, x.roll(-by, 1) * 2))
        computed.append(calls - before)
        kept += [x, out]
    for rows, columns in ((5, 7), (7, 5), (16, 3), (5, 7)):
        x, out = torch.randn(rows, columns), torch.empty(columns, rows)
        turned[(1,)](x, out, rows, columns, SIZE=SIZE)
        right["turned"].append(torch.equal(out.T, torch.where(torch.ones_like(x).tril().bool(), x, -1.0)))
        kept += [x, out]
    for kind in (torch.int32, torch.int64, torch.int32):
        x, index = torch.randn(40), torch.randint(0, 20, (SIZE - 3,), dtype=kind)
        out = torch.empty(SIZE - 3)
        gathered[(1,)](x, index, out, SIZE - 3, SIZE=SIZE)
        right["gathered"].append(torch.equal(out, x[index.long()] + x[index[0].item()]))
        kept += [x, index, out]
    print(json.dumps({"right": right, "computed": computed}))


if __name__ == "__main__":
    main()
