"""Masks are recognised by what they hold, however they were made; arguments and parameters never are."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st
from mugraph.ir.ops import Kind
from mugraph.ir.region import Region, SearchUnit, Trace, Triangle
from mugraph.trace.codec import trace_from_json, trace_to_json
from mugraph.trace.run.triangles import triangle_of
from mugraph.units.search_units import single_units

Found = Callable[..., Trace]

IDIOMS = {
    "triu of ones": "mask = torch.ones(t, t, dtype=torch.bool).triu(1)\n    s = s.masked_fill(mask, float('-inf'))",
    "tril == 0": "mask = torch.tril(torch.ones(t, t))\n    s = s.masked_fill(mask == 0, float('-inf'))",
    "not tril": "mask = torch.tril(torch.ones(t, t, dtype=torch.bool))\n    s = s.masked_fill(~mask, -torch.inf)",
    "where": "mask = torch.ones(t, t).tril().bool()\n    s = torch.where(mask, s, float('-inf'))",
    "where, the other way": "mask = torch.ones(t, t).triu(1) > 0\n    s = torch.where(mask, torch.tensor(-1e9), s)",
    "added": "mask = torch.triu(torch.full((t, t), float('-inf')), diagonal=1)\n    s = s + mask",
    "written in place": "mask = torch.full((t, t), float('-inf'), dtype=s.dtype).triu_(1)\n    s = mask + s",
    "positions": "i = torch.arange(t)\n    s = s.masked_fill(i[None, :] > i[:, None], torch.finfo(s.dtype).min)",
    "one minus": "mask = 1.0 - torch.tril(torch.ones(t, t))\n    s = s + mask * -1e9",
    "new full": "mask = q.new_full((t, t), float('-inf')).triu(1)\n    s = s + mask",
    "before the scale": "s = s.masked_fill(torch.ones(t, t).triu(1).bool(), float('-inf')) / 4",
    "expanded": "mask = torch.ones(t, t).triu(1).bool()[None, None].expand(2, 2, t, t)\n    "
    "s = s.masked_fill(mask, float('-inf'))",
}


def masks(region: Region) -> list[tuple[float, bool]]:
    """(diagonal, has it one axis a side?) of every mask in the region's search units."""
    ops = [op for piece in single_units(region) if isinstance(piece, SearchUnit) for op in piece.program.ops]
    return [(op.value, len(op.rows) == len(op.columns) == 1) for op in ops if op.kind is Kind.MASK]


@pytest.mark.parametrize("name", IDIOMS)
def test_idioms(name: str, trace: Found) -> None:
    found = trace(f"""
# mugraph: q=f32[2, 2, 24, 8], k=f32[2, 2, 24, 8], v=f32[2, 2, 24, 8]
def attend(q, k, v):
    t = q.shape[2]
    s = q @ k.transpose(-1, -2)
    {IDIOMS[name]}
    return s.softmax(-1) @ v
""")
    (region,) = found.regions
    assert masks(region) == [(0.0, True)]
    (piece,) = [piece for piece in single_units(region) if isinstance(piece, SearchUnit)]
    assert sorted(piece.inputs) == ["k", "q", "v"]
    assert trace_from_json(trace_to_json(found)) == found


MODULE = """
# mugraph: init(), x=f16[2, 24, 16]
class Attention(nn.Module):
    def __init__(self, most=64):
        super().__init__()
        self.proj = nn.Linear(16, 16)
        {make}

    def forward(self, x):
        t = x.shape[1]
        q = self.proj(x)
        s = q @ x.transpose(1, 2) / 4
        s = s.masked_fill({use}, float("-inf"))
        return F.softmax(s, dim=-1) @ x
"""
BUFFERS = {
    "nanoGPT": (
        'self.register_buffer("bias", torch.tril(torch.ones(most, most)).view(1, most, most))',
        "self.bias[:, :t, :t] == 0",
    ),
    "truth values": (
        'self.register_buffer("mask", torch.ones(most, most, dtype=torch.bool).triu(1))',
        "self.mask[:t, :t]",
    ),
    "made in place": (
        'mask = torch.zeros(most, most); mask.add_(1.0); mask.tril_(); self.register_buffer("mask", mask)',
        "self.mask[:t, :t].eq(0)",
    ),
    "the end of it": (
        'self.register_buffer("mask", torch.ones(most, most, dtype=torch.bool).tril())',
        "~self.mask[-t:, -t:]",
    ),
    "an attribute": ("self.mask = torch.ones(most, most).triu(1)", "self.mask[:t, :t] != 0"),
}


@pytest.mark.parametrize("name", BUFFERS)
def test_buffers(name: str, trace: Found) -> None:
    make, use = BUFFERS[name]
    found = trace(MODULE.format(make=make, use=use))
    region = next(region for region in found.regions if region.status is None)
    assert masks(region) == [(0.0, True)]
    kept = [region.values[live_in.value].triangle for live_in in region.live_ins]
    assert [triangle for triangle in kept if triangle is not None], "a buffer's numbers are looked at at run time"


NOT = {
    "a parameter": (
        "self.mask = nn.Parameter(torch.ones(most, most).tril(), requires_grad=False)",
        "self.mask[:t, :t] == 0",
    ),
    "a band": (
        'self.register_buffer("mask", torch.ones(most, most, dtype=torch.bool).tril().triu(-3))',
        "~self.mask[:t, :t]",
    ),
    "written to by index": (
        "mask = torch.ones(most, most).triu(1).bool(); mask[0, 0] = True; self.mask = mask",
        "self.mask[:t, :t]",
    ),
    "random": ("self.mask = torch.rand(most, most).tril()", "self.mask[:t, :t] == 0"),
    "a row that is hidden": ("self.mask = torch.ones(most, most).tril(-1)", "self.mask[:t, :t] == 0"),
}


@pytest.mark.parametrize("name", NOT)
def test_what_is_no_mask(name: str, trace: Found) -> None:
    make, use = NOT[name]
    found = trace(MODULE.format(make=make, use=use))
    assert all(masks(region) == [] for region in found.regions if region.status is None)


def test_arguments_are_no_constants(trace: Found) -> None:
    found = trace("""
# mugraph: x=f16[24, 16], mask=i64[24, 24]
def attend(x, mask):
    s = (x @ x.T).masked_fill(mask == 0, float("-inf"))
    return s.softmax(-1) @ x

# mugraph: x=f16[24, 16]
def caller(x):
    mask = torch.ones(24, 24).tril()
    return inner(x, mask)

def inner(x, mask):
    s = (x @ x.T).masked_fill(mask == 0, float("-inf"))
    return s.softmax(-1) @ x
""")
    by_name = {region.function: region for region in found.regions}
    assert masks(by_name["attend"]) == []
    assert masks(by_name["caller"]) == [(0.0, True)]


def test_another_mask_of_a_global(trace: Found) -> None:
    found = trace("""
MASK = torch.ones(64, 64).triu(1).bool()

# mugraph: x=f16[24, 16]
def attend(x):
    s = (x @ x.T).masked_fill(MASK[:24, :24], float("-inf"))
    return s.softmax(-1) @ x
""")
    (region,) = found.regions
    assert masks(region) == [(0.0, True)]
    triangles = {live_in.expression: region.values[live_in.value].triangle for live_in in region.live_ins}
    assert triangles == {"x": None, "MASK": Triangle(0, 0.0, 1.0)}


@settings(max_examples=200, deadline=None)
@given(
    st.integers(1, 7), st.integers(1, 7), st.integers(-8, 8), st.booleans(), st.integers(0, 2),
    st.sampled_from([(1.0, 0.0), (0.0, -torch.inf), (-torch.inf, 0.0), (3.0, -2.0)]),
)  # fmt: skip
def test_triangles_are_found_and_nothing_else(
    rows: int, columns: int, diagonal: int, expanded: bool, leading: int, pair: Any
) -> None:
    lower = torch.ones(rows, columns, dtype=torch.bool).tril(diagonal)
    matrix = torch.where(lower, *pair)
    tensor = matrix.expand(*(2,) * leading, rows, columns)
    found = triangle_of(tensor if expanded else tensor.clone())
    assert found is not None
    below, above = (-torch.inf if n is None else n for n in (found.below, found.above))
    again = torch.where(torch.ones(rows, columns, dtype=torch.bool).tril(found.diagonal), below, above)
    assert torch.equal(again, matrix)
    if rows * columns > 2:
        other = matrix.clone()
        other[torch.randint(rows, ()), torch.randint(columns, ())] = 7.0
        changed = triangle_of(other)
        if changed is not None:  # a corner may well be a triangle of its own
            numbers = (-torch.inf if n is None else n for n in (changed.below, changed.above))
            ones = torch.ones(rows, columns, dtype=torch.bool)
            assert torch.equal(torch.where(ones.tril(changed.diagonal), *numbers), other)


@pytest.mark.parametrize("value", [float("nan"), float("inf")])
def test_numbers_that_no_mask_has(value: float) -> None:
    assert triangle_of(torch.full((3, 3), value)) is None
    assert triangle_of(torch.full((3, 3), value).triu(1)) is None


@pytest.mark.parametrize("made", ["torch.Tensor([1e10])", "torch.FloatTensor([1e10])", "torch.Tensor(1).fill_(1e10)"])
def test_constructors_that_are_classes_end_a_region_and_fail_nothing(made: str, trace: Found) -> None:
    """They are no calls that a mode is told of, and what PyTorch calls in them is not the program's."""
    found = trace(f"""
# mugraph: density=f32[32, 16], depth=f32[32, 16]
def opacity(density, depth):
    step = depth[:, 1:] - depth[:, :-1]
    step = torch.cat((step, {made}.expand(32, 1)), dim=-1)
    return 1 - torch.exp(-torch.relu(density) * step)
""")
    assert not any(region.status == "failed" for region in found.regions), [one.reason for one in found.regions]
    assert found.regions[-1].text == "1 - torch.exp(-torch.relu(density) * step)"
