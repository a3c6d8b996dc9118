"""One product of matrices, in each type, long, and of one row."""

from __future__ import annotations

import torch

from tests.engine.verification.launchers.family import BF16, F16, F32, Family


def linear(x: torch.Tensor, w: torch.Tensor) -> torch.Tensor:
    return x @ w


LINEAR = {
    "one product": "x @ w",
    "by tiles": "blocked(x, w)",
    "split": "split(x, w, 4)",
    "backwards": "blocked(x.flip(-1), w.flip(0), 16)",
    "the other way round": "(w.T.contiguous() @ x.T).T",
}
WRONG_LINEAR = {
    "last term": "without_last(x) @ without_last(w, 0)",
    "first term": "x[:, 1:] @ w[1:]",
    "a term in the middle": "x[:, 1000] = 0\nx @ w",
    "a term of 170": "x[:, ::170] = 0\nx @ w",
    "last tile twice": "x @ w + x[:, -16:] @ w[-16:]",
    "a thousandth too large": "x @ w * 1.001",
    "one row of the result": "out = x @ w\nout[-1] = 0\nout",
    "a column with its neighbour's": "out = x @ w\nout[:, 3] = out[:, 4]\nout",
    "one element": "out = x @ w\nout[5, 7] *= 1.2\nout",
    "a hundredth of a spread aside": "out = x @ w\nout + 0.001 * out.std()",
}

FAMILIES = {
    "linear f16": Family(linear, {"x": (16, 2048), "w": (2048, 48)}, F16, LINEAR, WRONG_LINEAR),
    "linear bf16": Family(linear, {"x": (16, 2048), "w": (2048, 48)}, BF16, LINEAR, WRONG_LINEAR),
    "long linear bf16": Family(
        linear,
        {"x": (16, 14336), "w": (14336, 64)},
        BF16,
        LINEAR,
        WRONG_LINEAR,
    ),
    "linear f32": Family(
        linear,
        {"x": (16, 2048), "w": (2048, 48)},
        F32,
        LINEAR,
        {
            "in tf32": "h = lambda t: (t.view(torch.int32) & -8192).view(torch.float32)\nh(x) @ h(w)",
            "in bfloat16": "x @ w.bfloat16().float()",
            **WRONG_LINEAR,
        },
    ),
    "one row": Family(linear, {"x": (1, 4096), "w": (4096, 32)}, F16, LINEAR, {"last": WRONG_LINEAR["last term"]}),
}
