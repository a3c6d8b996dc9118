"""Halves of columns, put together with others: parts along another axis than the size."""

import torch


# mugraph: b=1..64, x=f16[2, b, 32], y=f16[2, b, 16], w=f16[32, 16]
def halves(x, y, w):
    first, second = x.chunk(2, dim=-1)
    return torch.cat((torch.relu(first) * second, y), dim=-1) @ w
