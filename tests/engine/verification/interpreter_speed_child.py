"""Launches a kernel that calls functions in Triton's interpreter, and prints what the language was on the way."""

from __future__ import annotations

import json

import torch
import triton
import triton.language as tl
from mugraph.verification.interpreter import patch_interpreter
from triton.runtime import interpreter

LAUNCHES, SIZE = 3, 64


@triton.jit
def above_zero(x):
    return tl.maximum(x, 0.0)


@triton.jit
def kernel(x_ptr, out_ptr, count, SIZE: tl.constexpr):
    at = tl.program_id(0) * SIZE + tl.arange(0, SIZE)
    total = tl.zeros([SIZE], tl.float32)
    for _ in range(4):
        x = tl.load(x_ptr + at, mask=at < count, other=0.0)
        total += above_zero(x) * tl.sigmoid(x)
    tl.store(out_ptr + at, total, mask=at < count)


def main() -> None:
    patched = 0
    original = interpreter._patch_lang

    def counted(fn: object) -> object:
        nonlocal patched
        patched += 1
        return original(fn)

    interpreter._patch_lang = counted
    patch_interpreter()
    builder = interpreter.InterpreterBuilder
    widened, cast = 0, builder.cast_impl

    def counted_cast(self: object, source: object, kind: tl.dtype) -> object:
        nonlocal widened
        widened += kind.scalar == tl.int64
        return cast(self, source, kind)

    builder.cast_impl = counted_cast
    own = tl.load
    x = torch.randn(5 * SIZE - 3)
    close = []
    for _ in range(LAUNCHES):
        out = torch.empty_like(x)
        kernel[(5,)](x, out, x.numel(), SIZE=SIZE)
        close.append(torch.allclose(out, 4 * x.relu() * x.sigmoid()))
    print(
        json.dumps(
            {"close": close, "patched": patched, "launches": LAUNCHES, "restored": tl.load is own, "widened": widened}
        )
    )


if __name__ == "__main__":
    main()
