"""A program, and one whose cast to a truth value was once lowered as nothing: for the check of lowering."""

from __future__ import annotations

RIGHT = """
# mugraph: x=f16[512, 4096]
def right(x):
    return torch.sigmoid(x * torch.exp(x)) + x
"""
WRONG = """
# mugraph: x=f16[512, 4096]
def wrong(x):
    return torch.sigmoid(x.to(torch.bool) * torch.exp(x)) + x
"""
