"""A gated MLP, most of which is a library's."""

import sys
from pathlib import Path

import torch
from torch import nn

sys.path.append(str(Path(__file__).parent / "site-packages"))

from lending import MIXERS, Swish, plain_mix, renamed


# mugraph: x=f32[6, 32]
class Borrowed(nn.Module):
    def __init__(self, dim=32, hidden=48):
        super().__init__()
        self.gate = nn.Linear(dim, hidden, bias=False)
        self.up = nn.Linear(dim, hidden, bias=False)
        self.down = nn.Linear(hidden, dim, bias=False)
        self.act = Swish()
        self.mixer = "plain"
        self.strength = 0.5

    @renamed("hidden", "x")
    def mixed(self, x, **kwargs):
        mix = MIXERS.named(self.mixer, plain_mix)
        h, weights = mix(self, self.act(self.gate(x)), self.up(x), **kwargs)
        return self.down(h), weights

    def forward(self, x):
        out, weights = self.mixed(hidden=x, weights=None)
        if weights is not None:
            out = out + weights
        return x + out


if __name__ == "__main__":
    print(Borrowed()(torch.ones(6, 32)))
