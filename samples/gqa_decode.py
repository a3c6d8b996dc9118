"""One decoding step of grouped-query attention over a long cache: few query rows, many keys (FlashDecoding's case)."""
# ruff: noqa: F722

from __future__ import annotations

from typing import TYPE_CHECKING

import torch
import torch.nn.functional as F
from torch import Tensor

if TYPE_CHECKING:  # annotations are read, not evaluated: the file runs where jaxtyping is not installed
    from jaxtyping import Float16


# mugraph: b=2, n=8192
def gqa_decode(
    q: Float16[Tensor, "b 8 128"],
    k_cache: Float16[Tensor, "b n 128"],
    v_cache: Float16[Tensor, "b n 128"],
) -> Float16[Tensor, "b 8 128"]:
    scores = torch.einsum("bqd,bnd->bqn", q, k_cache) * 128**-0.5
    return torch.einsum("bqn,bnd->bqd", F.softmax(scores, dim=-1), v_cache)
