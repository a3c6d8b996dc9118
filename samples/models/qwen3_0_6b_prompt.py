"""Qwen3 0.6B: the logits after 1,024 tokens."""

import torch
from decoder import Config, Decoder

CONFIG = Config(151936, 1024, 28, 16, 8, 128, 3072, eps=1e-6, base=1000000.0, head_norms=True)


class Model(Decoder):
    def __init__(self):
        super().__init__(CONFIG)

    def forward(self, tokens):
        cos, sin = self.rotary(torch.arange(tokens.shape[1], device=tokens.device))
        x = self.embed(tokens)
        for layer in self.layers:
            x = layer(x, cos, sin)
        return self.head(self.norm(x[:, -1:]))


def get_inputs():
    return Decoder.prompt_inputs(CONFIG)
