"""Llama 3.2 1B with low-rank updates of queries and values: the logits after 1,024 tokens."""

from decoder import Config, Prompt

CONFIG = Config(128256, 2048, 16, 32, 8, 64, 8192, rank=16)


class Model(Prompt):
    def __init__(self):
        super().__init__(CONFIG)


def get_inputs():
    return Prompt.inputs(CONFIG)
