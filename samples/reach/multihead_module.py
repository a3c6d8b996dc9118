"""nn.MultiheadAttention as a module, and an encoder layer by hand around it."""

import torch
from torch import nn


# mugraph: x=f16[2, 64, 256]
class EncoderLayer(nn.Module):
    def __init__(self, width: int = 256, heads: int = 4, dtype: torch.dtype = torch.float16):
        super().__init__()
        self.attention = nn.MultiheadAttention(width, heads, batch_first=True, dtype=dtype)
        self.norm1 = nn.LayerNorm(width, dtype=dtype)
        self.norm2 = nn.LayerNorm(width, dtype=dtype)
        self.feed_forward = nn.Sequential(
            nn.Linear(width, 4 * width, dtype=dtype), nn.ReLU(), nn.Linear(4 * width, width, dtype=dtype)
        )

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        attended, _ = self.attention(x, x, x, need_weights=False)
        x = self.norm1(x + attended)
        return self.norm2(x + self.feed_forward(x))
