"""Llama 3.2 1B: one token, with 2,047 in the caches."""

from decoder import Config, Step

CONFIG = Config(128256, 2048, 16, 32, 8, 64, 8192)


class Model(Step):
    def __init__(self):
        super().__init__(CONFIG)


def get_inputs():
    return Step.inputs(CONFIG)
