"""nn.Sequential: one call in the source, several operators."""

import torch
from torch import nn


# mugraph: x=f16[64, 512]
class Classifier(nn.Module):
    def __init__(self, width: int = 512, classes: int = 128, dtype: torch.dtype = torch.float16):
        super().__init__()
        self.net = nn.Sequential(
            nn.LayerNorm(width, dtype=dtype),
            nn.Linear(width, 4 * width, dtype=dtype),
            nn.SiLU(),
            nn.Dropout(0.1),
            nn.Linear(4 * width, classes, dtype=dtype),
        )

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        return self.net(x).softmax(dim=-1)
