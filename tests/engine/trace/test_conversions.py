"""Modules whose constructors convert themselves, or parts of themselves, to another type."""

from __future__ import annotations

from collections.abc import Callable

import pytest
from mugraph.ir.region import Region, Trace

Tracer = Callable[..., Trace]
BLOCK = """
    # mugraph: x=f16[4, 8]
    class Block(nn.Module):
        def __init__(self):
            super().__init__()
            self.fc = nn.Linear(8, 8)
            self.tied = nn.Linear(8, 8)
            self.tied.weight = self.fc.weight
            CONVERSION

        def forward(self, x):
            return self.tied(torch.relu(self.fc(x)))
"""


def dtypes(region: Region) -> dict[str, str]:
    return {named.expression: region.values[named.value].dtype for named in region.live_ins}


@pytest.mark.parametrize(
    "conversion", ["self.half()", "self.to(torch.float16)", "self.fc.half(); self.tied.bias.data = self.fc.bias.data"]
)
def test_a_constructor_converts(trace: Tracer, conversion: str) -> None:
    (region,) = trace(BLOCK.replace("CONVERSION", conversion)).regions
    assert region.status is None, region.reason
    assert set(dtypes(region).values()) == {"f16"}
    assert len(region.live_ins) == 4, "x, two biases, and the weight that both share"


def test_converting_a_part_converts_what_it_shares(trace: Tracer) -> None:
    source = BLOCK.replace("CONVERSION", "self.tied.half(); assert self.fc.weight.dtype == torch.float16")
    (region,) = trace(source).regions
    assert region.status is None, region.reason


def test_what_the_constructor_made_narrower_stays(trace: Tracer) -> None:
    source = BLOCK.replace("CONVERSION", "self.half()").replace("x=f16", "x=f32").replace("fc(x)", "fc(x.half())")
    (region,) = trace(source).regions
    assert region.status is None, region.reason
    assert dtypes(region)["self.fc.bias"] == "f16"


def test_a_layout_is_kept(trace: Tracer) -> None:
    (region,) = trace("""
        # mugraph: x=f16[2, 3, 8, 8]
        class Stem(nn.Module):
            def __init__(self):
                super().__init__()
                self.conv = nn.Conv2d(3, 4, 3)
                self.to(memory_format=torch.channels_last).half()

            def forward(self, x):
                return torch.relu(self.conv(x))
        """).regions
    assert region.status is None, region.reason
    (weight,) = (region.values[named.value] for named in region.live_ins if named.expression == "self.conv.weight")
    assert weight.strides == (27, 1, 9, 3)
