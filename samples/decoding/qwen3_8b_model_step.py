"""Four decoder layers of Qwen3 8B, its embedding and its head: one token, with 4,095 in the caches."""

from layers import Decoder, step_inputs


class Model(Decoder):
    def __init__(self):
        super().__init__(151936, 12288, norms=True)

    def forward(self, tokens, cos, sin, keys, values, place, mask):
        x = self.embedding(tokens)
        for i, layer in enumerate(self.layers):
            x = layer.step_indexed(x, cos, sin, keys[i], values[i], place, mask)
        return self.head(self.norm(x))


def get_inputs():
    return step_inputs(151936)
