"""Qwen3 0.6B: the logits after 1,024 tokens."""

from decoder import Config, Prompt

CONFIG = Config(151936, 1024, 28, 16, 8, 128, 3072, eps=1e-6, base=1000000.0, head_norms=True)


class Model(Prompt):
    def __init__(self):
        super().__init__(CONFIG)


def get_inputs():
    return Prompt.inputs(CONFIG)
