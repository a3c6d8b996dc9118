"""Scales of groups are taken out of the sums over what is in the groups, before a search has come to it."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace

import pytest
import torch
import torch.nn.functional as F
from mugraph.executors.searches import begin_search
from mugraph.ir.block import BlockGraph, Schedule
from mugraph.ir.program import TensorProgram
from mugraph.search import Limits, schedules
from mugraph.search.collected import collected
from mugraph.search.direct import as_block
from mugraph.search.factored import blocks_of, factored, looped
from mugraph.search.schedules.rows import slower
from mugraph.search.schedules.tiles import Shape
from mugraph.search.schedules.work import work
from mugraph.search.topologies.limits import never
from mugraph.targets import TARGETS
from mugraph.verification.verifier import verify_topology

from tests.engine.units.regions import cut, meta, units

H200 = TARGETS["h200"]


def of_bytes(x: torch.Tensor, w: torch.Tensor, scale: torch.Tensor) -> torch.Tensor:
    grouped = w.view(w.shape[0], scale.shape[1], -1).to(scale.dtype) * scale[:, :, None]
    return F.linear(x, grouped.flatten(1))


def of_halves(x: torch.Tensor, w: torch.Tensor, scale: torch.Tensor) -> torch.Tensor:
    codes = torch.stack((w >> 4, w & 0xF), dim=-1).view(w.shape[0], scale.shape[1], -1)
    return F.linear(x, ((codes.to(scale.dtype) - 8) * scale[:, :, None]).flatten(1))


def of_halves_with_zeros(x: torch.Tensor, w: torch.Tensor, scale: torch.Tensor, zero: torch.Tensor) -> torch.Tensor:
    codes = torch.stack((w & 0xF, w >> 4), dim=-1).view(w.shape[0], scale.shape[1], -1)
    return F.linear(x, ((codes.to(scale.dtype) - zero[:, :, None]) * scale[:, :, None]).flatten(1))


def per_channel(x: torch.Tensor, w: torch.Tensor, scale: torch.Tensor) -> torch.Tensor:
    return F.linear(x, w.to(scale.dtype) * scale)


def of_inputs(x: torch.Tensor, w: torch.Tensor, scale: torch.Tensor) -> torch.Tensor:
    """The scale is multiplied by the inputs alone, which are fewer than the sums of groups."""
    return F.linear(x * scale[0].repeat_interleave(x.shape[1] // scale.shape[1]), w.to(x.dtype))


def of_both(x: torch.Tensor, w: torch.Tensor, scale: torch.Tensor) -> torch.Tensor:
    """One product, with a result that is used twice."""
    y = of_bytes(x, w, scale)
    return y * torch.sigmoid(y)


HALVED = {of_halves, of_halves_with_zeros}


def program_of(
    function: Callable[..., torch.Tensor], rows: int = 1, columns: int = 4096, group: int = 128
) -> TensorProgram:
    half, depth = torch.float16, 2048
    tensors = {
        "x": meta(rows, depth, dtype=half),
        "w": meta(columns, depth // 2 if function in HALVED else depth, dtype=torch.uint8),
        "scale": meta(columns, 1 if function is per_channel else depth // group, dtype=half),
    }
    if function is of_halves_with_zeros:
        tensors["zero"] = meta(columns, depth // group, dtype=half)
    (unit,) = units(cut(function, **tensors))
    return unit.program


def scaled(program: TensorProgram | BlockGraph) -> list[str]:
    """Products with the scale in which what it is multiplied by varies along an axis that it does not."""
    ops = {op.name: op for op in program.ops}
    own = {op.name: {*op.axes} for op in program.ops if op.tensor == "scale"}
    return [
        op.name
        for op in program.ops
        for name in op.inputs
        if name in own and {*op.axes, *op.over} - own[name] and ops[op.name].kind.is_elementwise
    ]


@pytest.mark.parametrize("rows", [1, 8])
@pytest.mark.parametrize("group", [32, 128])
@pytest.mark.parametrize("function", [of_bytes, of_halves, of_halves_with_zeros, of_both])
def test_a_scale_is_multiplied_once_for_a_group(function: Callable[..., torch.Tensor], group: int, rows: int) -> None:
    program = program_of(function, rows, group=group)
    assert scaled(program)
    blocks = blocks_of(program)
    assert [len(block.loop_axes) for block in blocks] == [0, 1, 1] * (2 if function in HALVED and rows == 1 else 1)
    for block in blocks:
        assert not scaled(block)
        verdict = verify_topology(program, block)
        assert verdict.passed, verdict.reason


def test_halves_have_one_product_with_the_scales() -> None:
    program = factored(program_of(of_halves))
    assert program is not None
    assert [op.kind.contracts for op in program.ops].count(True) == 3
    assert len(program.compute_ops) < len(program_of(of_halves).compute_ops)


@pytest.mark.parametrize("function", sorted(HALVED, key=str))
def test_a_zero_point_is_multiplied_once_for_a_group(function: Callable[..., torch.Tensor]) -> None:
    """By the sum of the inputs in it, in place of being added to each weight."""
    program = program_of(function)
    found = collected(factored(program) or program)
    assert found is not None
    sizes = [len({*op.axes, *op.over}) for op in found.compute_ops if not op.kind.opaque]
    most = max(sizes)
    wide = [op for op in found.compute_ops if len({*op.axes, *op.over}) == most and not op.kind.opaque]
    assert all(op.kind.contracts for op in wide)
    assert verify_topology(program, as_block(found)).passed


@pytest.mark.parametrize("function", [per_channel, of_inputs])
def test_what_has_no_groups_stays_as_it_is(function: Callable[..., torch.Tensor]) -> None:
    assert blocks_of(program_of(function)) == []


def test_a_loop_is_not_put_around_what_needs_its_axis_afterwards() -> None:
    """As a softmax does: its sum is over what is then divided."""

    def softmax(x: torch.Tensor) -> torch.Tensor:
        return torch.exp(x) / torch.exp(x).sum(-1, keepdim=True)

    (unit,) = units(cut(softmax, x=meta(64, 4096, dtype=torch.float16)))
    (axis,) = {axis for op in unit.program.ops for axis in op.over}
    assert looped(as_block(unit.program), axis) is None


def test_it_is_found_first_and_expected_to_be_faster() -> None:
    program = program_of(of_halves, columns=14336)
    search = begin_search(program, Limits(seconds=0.5), None, never)
    found = [one.block for one in search.run()]
    assert found[:6] == blocks_of(program)
    assert search.stats.topologies == len(found)
    first, *_, direct = (schedules(block, H200)[0].estimate_us for block in (*found[:1], as_block(program)))
    assert first < direct


@pytest.mark.parametrize("rows", [8, 64])
def test_groups_are_products_of_their_own_where_rows_are_several(rows: int) -> None:
    """A group in each iteration, whose weights are still the right operand: as a search puts them."""
    program = program_of(of_halves, rows, columns=14336)
    scheduled = [block for block in blocks_of(program) if block.loops and schedules(block, H200)]
    assert scheduled
    for block in scheduled:
        (loop,) = block.loop_axes
        for product in Shape(block).products:
            if product.is_matrix:
                assert len(product.columns) == 1
                assert program.sizes[product.columns[0]] == 14336
        assert {one.schedule.loops.get(loop, 1) for one in schedules(block, H200)} == {1}
        verdict = verify_topology(program, block)
        assert verdict.passed, verdict.reason


def test_sums_of_groups_are_no_columns_that_warps_share() -> None:
    """They are added up by the threads that have them; the last sum has as many columns as the block."""
    program = program_of(of_halves, columns=14336)
    whole, *_ = blocks_of(program)
    schedule = Schedule((("n", 8),), num_warps=8, num_stages=2)
    times = [_slower(block, schedule) for block in (whole, as_block(program))]
    assert times[0] == times[1]
    assert _slower(whole, replace(schedule, grid=(("n", 16),))) != times[0]


def _slower(block: BlockGraph, schedule: Schedule) -> float:
    shape = Shape(block)
    return slower(shape, schedule, work(shape, schedule, schedule.blocks(block.sizes)))
