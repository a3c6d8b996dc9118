"""nGPT of half a billion parameters: one token, with 2,047 in the caches."""

import torch
from ngpt import DTYPE, NormalizedGPT, angles


class Model(NormalizedGPT):
    def forward(self, token, cos, sin, keys, values, place, mask):
        h = self.wte(token)
        for i, block in enumerate(self.blocks):
            h = block(h, cos, sin, keys[i], values[i], place, mask)
        return self.sz * self.lm_head(h)


def get_inputs():
    place = torch.tensor([2047])
    keys, values = (torch.randn(24, 1, 16, 2048, 64, dtype=DTYPE) for _ in range(2))
    mask = torch.arange(2048)[None] <= place[:, None]
    return [torch.randint(32000, (1, 1)), *angles(place), keys, values, place, mask]
