"""Objects whose class says itself what their attributes are, as configurations with other names for some."""

from __future__ import annotations

import pytest

from tests.engine.trace.partition import Regions, only

CONFIG = """
class Config:
    other_names = {{"hidden_size": "width"}}

    def __init__(self):
        self.width = 8
        self._doubled = True

{how}

    @property
    def doubled(self):
        return self._doubled


class Model(nn.Module):
    def __init__(self):
        super().__init__()
        self.config, self.up = Config(), nn.Linear(8, 8)

    # mugraph: x=f32[4, 8]
    def forward(self, x):
        if self.config.hidden_size == 8 and self.config.doubled:
            x = x * 2
        return torch.softmax(self.up(x), -1)
"""
EVERY = """\
    def __getattribute__(self, name):
        if name != "other_names" and name in super().__getattribute__("other_names"):
            name = super().__getattribute__("other_names")[name]
        return super().__getattribute__(name)
"""
THROUGH_OBJECT = """\
    def __getattribute__(self, key):
        names = object.__getattribute__(self, "other_names")
        return object.__getattribute__(self, names.get(key, key))
"""
MISSING = """\
    def __getattr__(self, name):
        if name not in self.other_names:
            raise AttributeError(name)
        return getattr(self, self.other_names[name])
"""


@pytest.mark.parametrize("how", [EVERY, THROUGH_OBJECT, MISSING], ids=["every", "through_object", "missing"])
def test_a_model_reads_them(how: str, regions: Regions) -> None:
    region = only(regions(CONFIG.format(how=how)))
    assert region.status is None, region.reason
    assert "x * 2" in region.text
    assert "softmax" in region.text
