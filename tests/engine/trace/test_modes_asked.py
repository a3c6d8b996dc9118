"""Code that asks PyTorch for a mode, or a tensor for what gradients it has: the answer is another one another time."""

from __future__ import annotations

import pytest

from tests.engine.trace.partition import Regions

ASKED = (
    "torch.is_grad_enabled()",
    "torch.is_inference_mode_enabled()",
    "x.requires_grad",
    "x.is_inference()",
    "not x.is_leaf",
)


@pytest.mark.parametrize("asked", ASKED)
def test_no_region_holds_what_was_answered(asked: str, regions: Regions) -> None:
    found = regions(f"""
        # mugraph: x=f32[4, 8], w=f32[8, 8]
        def stepped(x, w):
            h = torch.tanh(x @ w)
            if {asked}:
                h = h * 2 + x
            return h.softmax(-1)
        """)
    assert found
    assert not any(asked in region.text for region in found)


@pytest.mark.parametrize("asked", ASKED)
def test_no_expression_holds_it(asked: str, regions: Regions) -> None:
    found = regions(f"""
        # mugraph: x=f32[4, 8], w=f32[8, 8]
        def stepped(x, w):
            return (torch.tanh(x @ w) * 2 if {asked} else torch.sigmoid(x @ w)).softmax(-1)
        """)
    assert not any(asked in region.text for region in found)


def test_a_region_is_for_the_default_type_that_was_asked_for(regions: Regions) -> None:
    (region,) = regions("""
        # mugraph: x=f16[4, 8], y=f32[4, 8]
        def cast(x, y):
            return torch.tanh(x.to(torch.get_default_dtype()) * y)
        """)
    assert "_default_type('torch.float32')" in region.guards
