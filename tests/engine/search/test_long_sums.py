"""How long sums are taken: a lane that adds up thousands of numbers one by one loses more than PyTorch's sums do."""

from __future__ import annotations

from pathlib import Path

import pytest
import torch
from mugraph.ir.region import SearchUnit
from mugraph.search.run import Search
from mugraph.search.schedules.tile_choices import TileChoices
from mugraph.search.schedules.tiles import Shape
from mugraph.search.topologies.limits import Limits
from mugraph.trace.tracer import trace_file
from mugraph.units.search_units import single_units


def loop_tiles(folder: Path, shape: str, dim: int) -> set[int]:
    path = folder / "model.py"
    path.write_text(f"""
import torch


# mugraph: x=f32[{shape}]
def norm(x):
    return torch.norm(x, p=2, dim={dim}) * 2.0
""")
    (region,) = trace_file(path).regions
    (unit,) = [unit for unit in single_units(region) if isinstance(unit, SearchUnit)]
    blocks = [one.block for one in Search(unit.program, Limits(seconds=5)).run()]
    looped = [block for block in blocks if block.loop_axes]
    assert looped
    shapes = [Shape(block) for block in looped]
    return {tile[axis] for one in shapes for tile in TileChoices(one).together() for axis in one.loop_axes}


@pytest.mark.parametrize(
    ("shape", "dim", "least"),
    [("64, 65535", 1, 256), ("2, 16384, 512", 1, 256), ("64, 8192", 1, 16), ("64, 1000", 1, 16)],
)
def test_steps_along_a_long_axis_are_long(shape: str, dim: int, least: int, tmp_path: Path) -> None:
    tiles = loop_tiles(tmp_path, shape, dim)
    assert min(tiles) == least
    assert max(tiles) >= 256


@pytest.mark.parametrize(("tile", "worse"), [(16, True), (256, False)])
def test_what_a_lane_loses(tile: int, worse: bool) -> None:
    """A number as large as all others at the beginning: every number that is added after it is rounded to its steps."""
    x = torch.randn(64, 65536, generator=torch.Generator().manual_seed(0))
    x[:, 0] = 500.0
    lanes = torch.zeros(64, tile)
    for part in x.view(64, -1, tile).unbind(1):
        lanes = lanes + part * part
    exact = x.double().square().sum(1)
    error = ((lanes.double().sum(1) - exact) / exact).abs().max().item()
    assert (error > 1e-6) == worse
