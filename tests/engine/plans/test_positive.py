"""Of which inputs a root is taken: those are drawn without a sign."""

from __future__ import annotations

import textwrap
from pathlib import Path

import pytest
import torch
from mugraph.ir.region import Region, SearchUnit
from mugraph.plans.positive import positive_of_units
from mugraph.trace.tracer import trace_file
from mugraph.tune.messages import InputSpec
from mugraph.tune.timing import make_input
from mugraph.units.region_units import cut_region


def region_of(folder: Path, text: str) -> Region:
    path = folder / "program.py"
    path.write_text(
        "import torch\nfrom torch import nn\nfrom torch.nn import functional as F\n" + textwrap.dedent(text)
    )
    (region,) = trace_file(path).regions
    return region


def positive(region: Region) -> set[str]:
    region, parts = cut_region(region)
    found = positive_of_units(region, [part for part in parts if isinstance(part, SearchUnit)])
    return {live_in.expression for live_in in region.live_ins if live_in.value in found}


@pytest.mark.parametrize(
    ("code", "wanted"),
    [
        ("F.batch_norm(x, m, v, w, b)", {"v"}),
        ("(x - m) * torch.rsqrt(v + 1e-5)", {"v"}),
        ("x * torch.log(2 * v[None]) * w", {"v"}),
        ("x * torch.sqrt(v).view(1, 32) + w", {"v"}),
        ("x * torch.rsqrt(v / 4 + 1) * torch.sqrt(w)", {"v", "w"}),
        ("x * torch.rsqrt(x.pow(2).mean(-1, keepdim=True) + 1e-5) * w", set[str]()),  # it is above zero for every x
        ("x * torch.sqrt(v - m)", set[str]()),  # either may have a sign
        ("x / (v + 1.0) * w", set[str]()),
        ("x * torch.sqrt(1.0 - v)", set[str]()),
    ],
)
def test_what_roots_and_logarithms_are_taken_of(tmp_path: Path, code: str, wanted: set[str]) -> None:
    region = region_of(
        tmp_path,
        f"""
        # mugraph: x=f32[64, 32], m=f32[32], v=f32[32], w=f32[32], b=f32[32]
        def normed(x, m, v, w, b):
            return torch.relu({code})
        """,
    )
    assert positive(region) == wanted


def test_variances_that_pytorchs_own_calls_read(tmp_path: Path) -> None:
    """A norm that no unit has, as nothing else is next to it that would pay."""
    region = region_of(
        tmp_path,
        """
        # mugraph: x=f32[2, 8, 6, 6]
        class Net(nn.Module):
            def __init__(self):
                super().__init__()
                self.first, self.second = nn.Conv2d(8, 8, 3), nn.Conv2d(8, 8, 3)
                self.one, self.two = nn.BatchNorm2d(8), nn.BatchNorm2d(8)

            def forward(self, x):
                return torch.relu(self.two(self.second(torch.relu(self.one(self.first(x))))))
        """,
    )
    assert positive(region) == {"self.one.running_var", "self.two.running_var"}
    assert {live.expression for live in region.live_ins if live.value in positive_of_units(region, [])} == positive(
        region
    )


def test_they_are_drawn_without_a_sign() -> None:
    generator = torch.Generator().manual_seed(0)
    drawn = make_input(InputSpec((64,), (1,), "f32", 0.5, positive=True), generator)
    assert bool((drawn > 0).all())
    assert 0.3 < float(drawn.square().mean().sqrt()) < 0.7
    assert bool((make_input(InputSpec((64,), (1,), "f32", 0.5), generator) < 0).any())


def test_none_of_millions_is_zero() -> None:
    """Of float16 numbers below 2^-25 are."""
    generator = torch.Generator().manual_seed(0)
    drawn = make_input(InputSpec((1 << 26,), (1,), "f16", 0.35, positive=True), generator)
    assert float(drawn.min()) > 0
