"""An MLP-Mixer block: the same MLP over patches (transposed) and over channels."""

import torch
import torch.nn.functional as F
from torch import nn


class MlpBlock(nn.Module):
    def __init__(self, width: int, inner: int, dtype: torch.dtype):
        super().__init__()
        self.up = nn.Linear(width, inner, dtype=dtype)
        self.down = nn.Linear(inner, width, dtype=dtype)

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        return self.down(F.gelu(self.up(x), approximate="tanh"))


# mugraph: x=f16[4, 64, 256]
class MixerBlock(nn.Module):
    def __init__(self, patches: int = 64, channels: int = 256, dtype: torch.dtype = torch.float16):
        super().__init__()
        self.norm1 = nn.LayerNorm(channels, dtype=dtype)
        self.token_mixing = MlpBlock(patches, 128, dtype)
        self.norm2 = nn.LayerNorm(channels, dtype=dtype)
        self.channel_mixing = MlpBlock(channels, 512, dtype)

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        y = self.norm1(x).transpose(1, 2)
        y = self.token_mixing(y).transpose(1, 2)
        x = x + y
        return x + self.channel_mixing(self.norm2(x))
