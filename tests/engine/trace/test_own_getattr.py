"""Objects whose classes answer for attributes that they do not have, and raise what they like for others."""

from __future__ import annotations

import pytest

from tests.engine.trace.partition import Regions

RAISING = ("return self.__dict__['known'][name]", "raise RuntimeError(name)", "assert name in KNOWN, name; return 2.0")


@pytest.mark.parametrize("answer", RAISING)
def test_what_is_called_is_not_asked_by_its_own_code(answer: str, regions: Regions) -> None:
    found = regions(f"""
        KNOWN = ("scale",)

        class Scaling:
            def __init__(self, factor):
                self.factor, self.known = factor, {{"scale": 2.0}}

            def __getattr__(self, name):
                {answer}

            def __call__(self, x):
                return torch.tanh(x * self.factor)

        class Settings(dict):
            __call__ = dict.__getitem__

            def __getattr__(self, name):
                return self[name]

        scaling = Scaling(0.5)
        settings = Settings(width=8)

        # mugraph: x=f32[4, 8], w=f32[8, 8]
        def scaled(x, w):
            y = scaling(x @ w)
            return torch.softmax(y, -1) * settings("width")
        """)
    texts = {region.function: region.text for region in found}
    assert "scaling(x @ w)" in texts["scaled"] or "softmax" in texts["scaled"]
