"""Columns: an operator behind letters that take two UTF-16 code units, and several statements on a line."""

import torch


# mugraph: x=f16[32, 128], w=f16[128, 128], b=f16[128]
def unicode_columns(x: torch.Tensor, w: torch.Tensor, b: torch.Tensor) -> torch.Tensor:
    label = "𝜇-graph ×"; y = x @ w + b  # fmt: skip
    assert label
    α = torch.sigmoid(y); return α * y  # fmt: skip
