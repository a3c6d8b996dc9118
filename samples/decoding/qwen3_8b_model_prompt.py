"""Four decoder layers of Qwen3 8B, embedding and head: the logits after 1,024 tokens."""

from layers import Decoder, prompt_inputs


class Model(Decoder):
    def __init__(self):
        super().__init__(151936, 12288, norms=True)

    def forward(self, tokens, cos, sin):
        x = self.embedding(tokens)
        for layer in self.layers:
            x = layer.prompt(x, cos, sin)
        return self.head(self.norm(x[:, -1]))


def get_inputs():
    return prompt_inputs(151936)
