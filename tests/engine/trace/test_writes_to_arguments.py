"""Writes to an argument, beside calls that return the argument itself."""

from __future__ import annotations

import pytest

from tests.engine.trace.partition import Regions


@pytest.mark.parametrize("taken", ["y.contiguous()", "y.view(6, 8)", "y[:]", "y.reshape(48)"])
@pytest.mark.parametrize("written", ["y.clamp_(-1, 1)", "y += 1", "y[:2] = 0.5"])
def test_it_is_seen_outside(taken: str, written: str, regions: Regions) -> None:
    """Memory that is first met in an argument is no memory of the region's."""
    found = regions(f"""
        # mugraph: x=f32[6, 8], y=f32[6, 8]
        def stepped(x, y):
            {written}
            kept = {taken}
            half = torch.tanh(y * 0.5) + y.mean(-1, keepdim=True)
            return torch.sigmoid(half + x), kept.shape
        """)
    for region in found:
        written_in = any(call.target.endswith("_") or "setitem" in call.target for call in region.calls)
        assert written not in region.text or written_in, [call.target for call in region.calls]


@pytest.mark.parametrize("written", ["self.state.data.add_(0.5)", "self.state += 0.5", "self.state.detach().mul_(2)"])
def test_memory_that_a_tensor_is_given_is_no_regions_own(written: str, regions: Regions) -> None:
    """`set_` is a call that PyTorch tells nobody of."""
    found = regions(f"""
        # mugraph: x=f32[4, 8]
        class Head(nn.Module):
            def __init__(self):
                super().__init__()
                self.register_buffer("state", torch.zeros(8))

            def forward(self, x):
                self.state.set_(x.mean(0))
                out = torch.tanh(x) + torch.sigmoid(x)
                {written}
                return out * 2
        """)
    assert found
    for region in found:
        assert written not in region.text or any(call.target == "Tensor.copy_" for call in region.calls)
        assert "set_" not in region.text
