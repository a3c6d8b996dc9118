"""Tensors without numbers lie as those with numbers do, also where a dimension has one element."""

from __future__ import annotations

import pytest
import torch
from mugraph.trace.run.without_numbers import WithoutNumbers

from tests.engine.trace.partition import Regions, ins

VIEWS = (
    ((1, 64, 32), (0, 2, 1), (1, 32, 8, 8)),
    ((2, 64, 32), (0, 2, 1), (2, 32, 8, 8)),
    ((1, 4, 3), (1, 0, 2), (1, 4, 1, 3)),
    ((3, 2, 1, 1), (1, 3, 2, 0), (1, 2, 1, 1, 1, 3)),
    ((1, 16, 6), (2, 0, 1), (6, 4, -1, 1)),
)


@pytest.mark.parametrize(("shape", "order", "seen_as"), VIEWS)
def test_a_view_has_the_strides_that_it_has_with_numbers(
    shape: tuple[int, ...], order: tuple[int, ...], seen_as: tuple[int, ...]
) -> None:
    def strides() -> tuple[int, ...]:
        return torch.empty(shape)[:].permute(order).view(seen_as).stride()

    expected = strides()
    with WithoutNumbers():
        assert strides() == expected


@pytest.mark.parametrize("batch", [1, 2])
@pytest.mark.parametrize("layer", ["nn.ConvTranspose2d(32, 8, 2, 2)", "nn.Conv2d(32, 8, 3, padding=1)"])
def test_what_follows_a_convolution_is_made_for_the_order_of_its_result(
    batch: int, layer: str, regions: Regions
) -> None:
    """Of one image, tokens that are seen as an image are no image whose channels are last."""
    (found,) = (
        region
        for region in regions(f"""
        # mugraph: x=f32[{batch}, 64, 32]
        class Upscaling(nn.Module):
            def __init__(self):
                super().__init__()
                self.layer = {layer}

            def forward(self, x):
                up = self.layer(x.transpose(1, 2).view(x.shape[0], 32, 8, 8))
                self.kept = up
                return torch.tanh(up - up.mean(1, keepdim=True))
        """)
        if ins(region) == ["up"]
    )
    up = found.values[found.live_ins[0].value]
    assert up.strides[1] == (1 if batch > 1 else up.shape[2] * up.shape[3])
