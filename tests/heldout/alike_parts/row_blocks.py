"""Blocks of columns, each multiplied by its own small matrix, and one product of them all after it."""

import torch


# mugraph: acts=f16[32, 480], blocks=f16[480, 48], mix=f16[480, 64]
def block_diagonal(acts, blocks, mix):
    parts = [acts[:, i : i + 48] @ blocks[i : i + 48] for i in range(0, 480, 48)]
    return torch.tanh(torch.cat(parts, dim=1)) @ mix
