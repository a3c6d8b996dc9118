"""Running sums on the GPU: in tiles of every kind, in both directions, as exact as PyTorch's own."""

from __future__ import annotations

import importlib.util
from collections.abc import Callable
from pathlib import Path
from types import ModuleType

import pytest
import torch
from mugraph.codegen.lower import lower_kernels
from mugraph.ir.block import BlockGraph, Schedule
from mugraph.search.direct import DirectSearch
from mugraph.search.schedules.tiles import Shape

from tests.engine.ops.harness import lower_region, record

pytestmark = [
    pytest.mark.gpu,
    pytest.mark.skipif(not torch.cuda.is_available(), reason="no GPU"),
    pytest.mark.timeout(300),
]

Function = Callable[[torch.Tensor], torch.Tensor]
HEAD = "import torch\nimport triton\nimport triton.language as tl\n\n\n"
ROWS, COLUMNS = 37, 5000


def forwards(x: torch.Tensor) -> torch.Tensor:
    return torch.cumsum(x, 1) * 0.5


def along_columns(x: torch.Tensor) -> torch.Tensor:
    return torch.cumsum(x.T, 0) + x.T


def backwards(x: torch.Tensor) -> torch.Tensor:
    return x.flip(1).cumsum(1).flip(1)


def before(x: torch.Tensor) -> torch.Tensor:
    return torch.cat((torch.zeros_like(x[:, :1]), torch.cumsum(x[:, :-1], 1)), 1)


def from_its_end(x: torch.Tensor) -> torch.Tensor:
    return torch.cumsum(x.flip(1), 1)


def scheduled(block: BlockGraph, rows: int, tile: int, warps: int) -> Schedule:
    grid = tuple((axis, rows) for axis in Shape(block).grid_axes)
    return Schedule(grid, dict.fromkeys(block.loop_axes, tile), num_warps=warps)


def module_of(text: str, folder: Path) -> ModuleType:
    path = folder / "kernels.py"
    path.write_text(text)
    spec = importlib.util.spec_from_file_location(f"kernels_{folder.name}", path)
    assert spec is not None
    assert spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


@pytest.mark.parametrize("fn", [forwards, along_columns, backwards, before, from_its_end])
@pytest.mark.parametrize(("rows", "tile", "warps"), [(1, 0, 4), (1, 16, 4), (4, 64, 4), (16, 512, 8), (1, 2048, 8)])
def test_as_exact_as_pytorch(fn: Function, rows: int, tile: int, warps: int, tmp_path: Path) -> None:
    """tile: of a loop; 0: a block holds whole rows"""
    x = torch.randn(ROWS, COLUMNS, generator=torch.Generator().manual_seed(0))
    program = lower_region(record(fn, {"x": x})).program
    block = next(one.block for one in DirectSearch(program).run() if bool(one.block.loops) == bool(tile))
    source = lower_kernels([(block, scheduled(block, rows, tile, warps))], program=program)
    module = module_of(f"{HEAD}{source.jit}\n\n\n{source.launcher}\n", tmp_path)
    found = getattr(module, f"launch_{source.name}")(x.cuda()).cpu()
    exact, eager = fn(x.double()), fn(x.cuda()).cpu()
    assert found.shape == exact.shape

    def wrong(result: torch.Tensor) -> float:
        return float((result.double() - exact).square().mean().sqrt() / exact.square().mean().sqrt())

    assert wrong(found) <= max(4 * wrong(eager), 1e-6)
