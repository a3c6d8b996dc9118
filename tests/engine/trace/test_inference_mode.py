"""Code in the inference mode, whose tensors keep no count of what is written to them: writes are found all the same."""

from __future__ import annotations

import pytest

from tests.engine.trace.partition import Regions, only, targets

WAYS = ("@torch.inference_mode()", "@torch.inference_mode", "@torch.no_grad()")
HIDDEN = (
    "F.relu(h.view(8, 4), inplace=True)",
    "torch.mul(h, 2.0, out=h)",
    "h.view(8, 4).add_(1.0)",
    "nn.init.zeros_(h[:, :3])",
)


@pytest.mark.parametrize("way", WAYS)
@pytest.mark.parametrize("write", HIDDEN)
def test_no_region_goes_across_a_write_that_it_does_not_have(way: str, write: str, regions: Regions) -> None:
    found = regions(f"""
        # mugraph: x=f32[4, 8], w=f32[8, 8]
        {way}
        def f(x, w):
            h = torch.tanh(x @ w)
            {write}
            return torch.softmax(h, -1)
        """)
    assert found
    assert not any("tanh" in region.text and "softmax" in region.text for region in found)


@pytest.mark.parametrize("way", WAYS)
def test_a_region_has_the_writes_of_its_own_tensors(way: str, regions: Regions) -> None:
    found = only(
        regions(f"""
        # mugraph: x=f32[4, 8], w=f32[8, 8], mask=f32[4, 8]
        {way}
        def f(x, w, mask):
            h = x @ w
            h += mask
            F.silu(h, inplace=True)
            return torch.softmax(h, -1)
        """)
    )
    assert [target.rpartition(".")[2] for target in targets(found)] == ["matmul", "add", "silu", "softmax"]


def test_what_is_asked_of_the_modes_is_as_without_a_tracer(regions: Regions) -> None:
    """Within a block, in one within that turns it off, and after both."""
    found = regions("""
        # mugraph: x=f32[4, 8], w=f32[8, 8]
        def f(x, w):
            said = []
            with torch.inference_mode():
                said += [torch.is_inference_mode_enabled(), torch.is_grad_enabled()]
                with torch.inference_mode(False):
                    said += [torch.is_inference_mode_enabled(), torch.is_grad_enabled()]
                said += [torch.is_inference_mode_enabled(), torch.is_grad_enabled()]
            said += [torch.is_inference_mode_enabled()]
            if said != [True, False, False, True, True, False, False]:
                raise ValueError(said)
            return torch.softmax(x @ w, -1)
        """)
    assert only(found).status is None


def test_memory_that_was_made_in_the_mode_before(regions: Regions) -> None:
    """By the module while it is imported, and by an object's constructor: both are written to in the mode."""
    found = regions("""
        with torch.inference_mode():
            SHARED = torch.zeros(4, 8)

        # mugraph: x=f32[4, 8]
        class Cached(nn.Module):
            @torch.inference_mode()
            def __init__(self):
                super().__init__()
                self.cache = torch.zeros(4, 8)

            @torch.inference_mode()
            def forward(self, x):
                self.cache.mul_(0.5)
                SHARED[:2] = 1.0
                return torch.softmax(x * self.cache + SHARED, -1)
        """)
    assert "softmax" in only(found).text
