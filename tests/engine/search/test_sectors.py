"""What a tile moves beyond its own bytes: memory comes in sectors."""

from __future__ import annotations

from dataclasses import replace

import pytest
from mugraph.ir.block import Schedule
from mugraph.ir.tensors import Tensor
from mugraph.search.direct import as_block
from mugraph.search.schedules.cost import estimate_us
from mugraph.search.schedules.sectors import in_sectors, innermost
from mugraph.search.schedules.sizes import schedules
from mugraph.targets import TARGETS

from tests.engine.search.workloads import Builder

SIZES = {"h": 4, "s": 64, "d": 32, "one": 1}


@pytest.mark.parametrize(
    ("dims", "strides", "axes"),
    [
        ((("h",), ("s",), ("d",)), (2048, 32, 1), ("d", "s", "h")),
        ((("h",), ("s",), ("d",)), (4096, 64, 1), ("d",)),  # half of each row
        ((("s",), ("h", "d")), (128, 1), ("d", "h", "s")),
        ((("s",), ("d",)), (64, 2), ()),  # every second element
        ((("s",), ("d",), ("one",)), (32, 1, 1), ("d", "s")),
        ((("h",), ("d",)), (0, 1), ("d",)),  # expanded
    ],
)  # fmt: skip
def test_axes_without_gaps(dims: tuple[tuple[str, ...], ...], strides: tuple[int, ...], axes: tuple[str, ...]) -> None:
    assert innermost(Tensor("x", dims, strides, "f16"), SIZES) == axes


@pytest.mark.parametrize(
    ("grid", "times"),
    [({"d": 1}, 16.0), ({"d": 8}, 2.0), ({"d": 16}, 1.0), ({"s": 1}, 1.0), ({}, 1.0), ({"d": 32, "s": 1}, 1.0)],
)
def test_short_runs_are_paid_for_in_whole_sectors(grid: dict[str, int], times: float) -> None:
    assert in_sectors(("d", "s"), 2, {**SIZES, **grid}, SIZES) == times
    assert in_sectors((), 2, {**SIZES, **grid}, SIZES) == 1.0


def test_rows_are_not_cut_into_columns() -> None:
    """An element-wise kernel whose blocks each take a column of every row takes longer by estimate."""
    b = Builder("scaled", s=4096, d=512)
    block = as_block(b.program(b.mul("y", b.input("x", "s", "d"), b.input("w", "d")), "s", "d"))
    rows, columns = (Schedule(grid) for grid in ((("s", 8),), (("d", 1),)))
    assert estimate_us(block, rows, TARGETS["h200"]) < estimate_us(block, columns, TARGETS["h200"])


@pytest.mark.parametrize("dtype", ["f32", "f16"])
@pytest.mark.parametrize(
    "sizes", [{"b": 16, "c": 64, "n": 15876}, {"b": 3, "c": 96, "n": 10000}, {"c": 2048, "n": 4096}]
)
def test_a_transposing_kernel_writes_long_runs(dtype: str, sizes: dict[str, int]) -> None:
    """On an H100 one that writes 512 bytes together is 1.25 times as fast as one that writes 128."""
    b = Builder("turned", **sizes)
    batch = [axis for axis in sizes if axis == "b"]
    x = b.input("x", *batch, "n", "c")
    program = b.program(b.unary("silu", "y", b.add("shifted", x, b.input("bias", "c"))), *batch, "c", "n")
    typed = [replace(tensor, dtype=dtype) for tensor in (*program.tensors, *program.outputs.values())]
    *tensors, out = typed
    block = as_block(replace(program, tensors=tuple(tensors), outputs=dict.fromkeys(program.outputs, out)))
    best = schedules(block, TARGETS["h100"])[0]
    tiles = dict(best.schedule.grid)
    width = 4 if dtype == "f32" else 2
    assert tiles["n"] * width in (512, 1024)
    assert tiles["c"] * width >= 64
    short = replace(best.schedule, grid=tuple((axis, {"n": 32, "c": 32}.get(axis, 1)) for axis in tiles))
    assert estimate_us(block, short, TARGETS["h100"]) > 1.1 * best.estimate_us
