"""Qwen3 0.6B: one token, with 2,047 in the caches."""

import torch
from decoder import Config, Decoder

CONFIG = Config(151936, 1024, 28, 16, 8, 128, 3072, eps=1e-6, base=1000000.0, head_norms=True)


class Model(Decoder):
    def __init__(self):
        super().__init__(CONFIG)

    def forward(self, token, place, keys, values):
        cos, sin = self.rotary(place)
        mask = torch.arange(keys.shape[3], device=token.device)[None] <= place[:, None]
        x = self.embed(token)
        for i, layer in enumerate(self.layers):
            x = layer(x, cos, sin, (keys[i], values[i]), place, mask)
        return self.head(self.norm(x))


def get_inputs():
    return Decoder.step_inputs(CONFIG)
