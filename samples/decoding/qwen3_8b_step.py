"""A decoder layer of Qwen3 8B: one token, with 4,095 in the cache."""

from layers import Layer
from torch import nn


# mugraph: x=f16[1, 1, 4096], cos=f16[1, 128], sin=f16[1, 128], keys=f16[1, 8, 4095, 128], values=f16[1, 8, 4095, 128]
class Step(nn.Module):
    def __init__(self):
        super().__init__()
        self.layer = Layer(12288, norms=True)

    def forward(self, x, cos, sin, keys, values):
        return self.layer.step(x, cos, sin, keys, values)
