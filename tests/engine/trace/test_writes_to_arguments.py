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
