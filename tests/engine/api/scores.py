"""A module of the user's, as text: two products with a softmax between them."""

from __future__ import annotations

SCORES = """\
class Scores(nn.Module):
    def __init__(self, width=64):
        super().__init__()
        self.weight = nn.Parameter(torch.randn(width, width))

    def forward(self, x):
        return torch.softmax(x @ self.weight, dim=-1) @ self.weight
"""
