"""Sequences in chunks, as state-space models have them: decays as segment sums, products of four tensors at once."""

import torch
from torch import nn


def decays(steps: torch.Tensor) -> torch.Tensor:
    """From each step to each later one: the exponential of the sum between them."""
    length = steps.size(-1)
    total = torch.cumsum(steps, dim=-1)
    between = total[..., :, None] - total[..., None, :]
    later = torch.tril(torch.ones(length, length, device=steps.device, dtype=torch.bool))
    return torch.exp(between.masked_fill(~later, float("-inf")))


# mugraph: x=f32[3, 40, 2, 20], steps=f32[3, 40, 2]
class ChunkScan(nn.Module):
    def __init__(self, batch: int = 3, length: int = 40, heads: int = 2, state: int = 12, chunk: int = 20):
        super().__init__()
        self.chunk = chunk
        self.reads = nn.Parameter(torch.randn(batch, length, heads, state) * 0.3)
        self.writes = nn.Parameter(torch.randn(batch, length, heads, state) * 0.3)

    def chunks(self, x: torch.Tensor) -> torch.Tensor:
        return x.unflatten(1, (x.shape[1] // self.chunk, self.chunk))

    def forward(self, x: torch.Tensor, steps: torch.Tensor) -> torch.Tensor:
        x, reads, writes = self.chunks(x), self.chunks(self.reads), self.chunks(self.writes)
        steps = self.chunks(-steps.abs()).permute(0, 3, 1, 2)
        total = torch.cumsum(steps, dim=-1)
        within = torch.einsum("bclhn,bcshn,bhcls,bcshp->bclhp", reads, writes, decays(steps), x)
        left = torch.exp(total[..., -1:] - total)
        states = torch.einsum("bclhn,bhcl,bclhp->bchpn", writes, left, x)
        across = torch.einsum("bclhn,bchpn,bhcl->bclhp", reads, states, torch.exp(total))
        return (within + across).flatten(1, 2)
