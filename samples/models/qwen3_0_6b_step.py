"""Qwen3 0.6B: one token, with 2,047 in the caches."""

from decoder import Config, Step

CONFIG = Config(151936, 1024, 28, 16, 8, 128, 3072, eps=1e-6, base=1000000.0, head_norms=True)


class Model(Step):
    def __init__(self):
        super().__init__(CONFIG)


def get_inputs():
    return Step.inputs(CONFIG)
