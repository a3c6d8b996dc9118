"""One expression as methods chained over lines."""

import torch


# mugraph: q=f16[2, 64, 512], k=f16[2, 64, 512], v=f16[2, 64, 512]
def method_chain(q: torch.Tensor, k: torch.Tensor, v: torch.Tensor) -> torch.Tensor:
    return (
        q.unflatten(-1, (8, 64))
        .transpose(1, 2)
        .matmul(k.unflatten(-1, (8, 64)).permute(0, 2, 3, 1))
        .mul(0.125)
        .softmax(dim=-1)
        .matmul(v.unflatten(-1, (8, 64)).transpose(1, 2))
        .transpose(1, 2)
        .flatten(2)
    )
