"""Sources that the fake engine finds regions in."""

from __future__ import annotations

IMPROVED = """import torch


# mugraph: x=f16[16, 4096]
def f(x):
    return torch.relu(x) @ x
"""

TWO = (
    IMPROVED
    + """

# mugraph: x=f16[16, 4096]
def g(x):
    return torch.silu(x) @ x
"""
)

UNSHAPED = """import torch


def f(x):
    return torch.relu(x) @ x
"""
