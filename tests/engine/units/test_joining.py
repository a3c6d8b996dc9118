"""Search units with several outputs: what is joined, what stays apart; joined units compute the region."""

from __future__ import annotations

import random
from collections.abc import Callable
from typing import Any

import pytest
import torch
import torch.nn.functional as F
from mugraph.ir.ops import Kind
from mugraph.ir.region import PlainCalls, SearchUnit
from mugraph.ir.spec import check_program
from mugraph.units.joiner import MAX_OUTPUTS
from mugraph.units.joining import units
from mugraph.units.own_names import with_own_names
from mugraph.units.search_units import single_units

from tests.engine.ops.harness import randn, record
from tests.engine.units.regions import meta, random_dag, rms, run


def joint(fn: Callable[..., Any], **inputs: torch.Tensor) -> SearchUnit:
    (unit,) = units(record(fn, inputs))
    assert isinstance(unit, SearchUnit)
    assert check_program(unit.program) == []
    return unit


def test_a_sum_and_the_product_of_its_norm() -> None:
    def block(x: torch.Tensor, y: torch.Tensor, w: torch.Tensor) -> Any:
        h = x + y
        return h, rms(h) @ w

    unit = joint(block, x=meta(16, 4096), y=meta(16, 4096), w=meta(4096, 4096))
    assert len(unit.outputs) == 2
    assert sum(op.kind is Kind.ADD and len(op.axes) == 2 for op in unit.program.ops) == 1
    assert [type(part) for part in unit.apart] == [PlainCalls, SearchUnit]


def test_blocks_and_their_scales_are_joined_through_a_view_of_the_scales() -> None:
    def block(x: torch.Tensor) -> Any:
        blocks = x.view(64, 4, 128)
        scale = blocks.abs().amax(-1).float().clamp(min=1e-4) / 448.0
        return (blocks.float() / scale[..., None]).to(torch.float8_e4m3fn), scale

    unit = joint(block, x=meta(64, 512, dtype=torch.bfloat16))
    assert sorted(tensor.dtype for tensor in unit.program.outputs.values()) == ["f32", "f8e4m3"]
    assert sum(op.kind.reduces for op in unit.program.ops) == 1


def test_views_that_others_read_stay() -> None:
    def block(x: torch.Tensor) -> Any:
        scale = x.abs().amax(-1)
        seen = scale[:, None]
        return x / seen, scale, seen

    parts = units(record(block, {"x": meta(64, 512)}))
    assert any(isinstance(part, PlainCalls) for part in parts)
    (unit,) = (part for part in parts if isinstance(part, SearchUnit))
    assert len(unit.outputs) == 2


def test_projections_of_one_norm_share_their_columns() -> None:
    def block(x: torch.Tensor, q: torch.Tensor, k: torch.Tensor, v: torch.Tensor) -> Any:
        h = rms(x)
        return h @ q, h @ k, h @ v

    wide = {"x": meta(16, 1024), "q": meta(1024, 512)}
    unit = joint(block, **wide, k=meta(1024, 128), v=meta(1024, 128))
    first, second, third = unit.program.outputs.values()
    assert second.axes == third.axes != first.axes
    assert sum(op.kind is Kind.SQRT for op in unit.program.ops) == 1
    assert len(unit.apart) == 3
    equal = joint(block, **wide, k=meta(1024, 512), v=meta(1024, 512))
    assert len({tensor.axes for tensor in equal.program.outputs.values()}) == 1


def test_axes_that_meet_are_not_shared() -> None:
    """Columns of two products of one size that a third value has both of."""

    def block(x: torch.Tensor, a: torch.Tensor, b: torch.Tensor) -> Any:
        p, q = x @ a, x @ b
        return p, q, p.sum(0)[:, None] * q.sum(0)

    units_ = units(record(block, {"x": meta(8, 256), "a": meta(256, 64), "b": meta(256, 64)}))
    for unit in units_:
        if isinstance(unit, SearchUnit):
            assert check_program(unit.program) == []
            assert all(len(set(op.axes)) == len(op.axes) for op in unit.program.ops)


def test_what_would_gain_nothing_stays_apart() -> None:
    def large(x: torch.Tensor, a: torch.Tensor, b: torch.Tensor) -> Any:
        return x @ a, x @ b

    sizes = {"x": meta(8192, 8192), "a": meta(8192, 8192), "b": meta(8192, 8192)}
    assert len(units(record(large, sizes))) == 2

    def between(x: torch.Tensor, a: torch.Tensor, b: torch.Tensor) -> Any:
        """The second product needs the first one's sorted rows, so no kernel computes both."""
        y = x @ a
        return y, x + torch.sort(y).values @ b

    found = units(record(between, {"x": meta(8, 64), "a": meta(64, 64), "b": meta(64, 64)}))
    assert all(len(unit.outputs) == 1 for unit in found if isinstance(unit, SearchUnit))


def test_no_more_outputs_than_a_search_unit_may_have() -> None:
    def many(x: torch.Tensor, **w: torch.Tensor) -> Any:
        return tuple(x @ one for one in w.values())

    found = units(record(many, {"x": meta(8, 256), **{f"w{i}": meta(256, 64) for i in range(6)}}))
    counts = [len(unit.outputs) for unit in found if isinstance(unit, SearchUnit)]
    assert sum(counts) == 6
    assert 1 < max(counts) <= MAX_OUTPUTS


def test_what_is_written_in_place_keeps_its_order() -> None:
    def update(x: torch.Tensor, a: torch.Tensor, b: torch.Tensor) -> Any:
        y = x @ a
        x.mul_(2.0)
        return y, x @ b

    inputs = {"x": randn(4, 6), "a": randn(6, 6), "b": randn(6, 6, seed=1)}
    region = record(update, inputs)
    assert units(region) == single_units(region)


def _elements(y: torch.Tensor) -> Any:
    half, other = y.chunk(2, -1)
    return half * other - half * 2, half * half + other * 0.5


def test_chains_that_share_what_they_read_are_one_pass() -> None:
    def step(p: torch.Tensor, g: torch.Tensor, m: torch.Tensor, v: torch.Tensor) -> Any:
        m, v = 0.9 * m + 0.1 * g, 0.99 * v + 0.01 * g * g
        return p * 0.999 - 0.01 * m / (v.sqrt() + 1e-8), m, v

    unit = joint(step, **{name: meta(512, 512) for name in "pgmv"})
    assert len(unit.outputs) == 3
    assert len(unit.program.tensors) == 4

    def gate(dy: torch.Tensor, a: torch.Tensor, b: torch.Tensor) -> Any:
        """The sigmoid, one call of PyTorch's, is read by both."""
        s = torch.sigmoid(a)
        return dy * b * s * (1 + a * (1 - s)), dy * (a * s)

    unit = joint(gate, **{name: meta(512, 512) for name in ("dy", "a", "b")})
    assert sum(op.fn == "sigmoid" for op in unit.program.ops) == 1

    unit = joint(_elements, y=meta(512, 512))
    assert len(unit.outputs) == len(unit.views) == 2


def test_conversions_belong_to_what_reads_and_makes_them() -> None:
    def add_norm(x: torch.Tensor, r: torch.Tensor, w: torch.Tensor) -> Any:
        """As Llama's code keeps the residual: it is added in float32, and kept in 16 bits."""
        r = x.float() + r.float()
        return (r * torch.rsqrt(r.pow(2).mean(-1, keepdim=True) + 1e-5)).half() * w, r.half()

    half = {"dtype": torch.float16}
    unit = joint(add_norm, x=meta(256, 1024, **half), r=meta(256, 1024, **half), w=meta(1024, **half))
    assert {tensor.dtype for tensor in (*unit.program.tensors, *unit.program.outputs.values())} == {"f16"}
    assert len(unit.outputs) == 2


def test_chains_of_other_sizes_stay_apart() -> None:
    def rows(x: torch.Tensor, r: torch.Tensor) -> Any:
        s = torch.exp(r) * 2 + 1
        return x * s * 2 + x, s * s - r

    found = units(record(rows, {"x": meta(512, 512), "r": meta(512)}))
    for unit in found:
        assert isinstance(unit, SearchUnit)
        assert len({tuple(unit.program.outputs[name].axes) for name in unit.outputs}) == 1


def test_parts_of_tensors_are_read_by_joined_units() -> None:
    inputs = {"y": randn(6, 8)}
    region = record(_elements, inputs)
    env = run(region, units(region), inputs)
    for live, expected in zip(region.live_outs, _elements(inputs["y"]), strict=True):
        torch.testing.assert_close(env[live.value], expected, check_dtype=False)


@pytest.mark.parametrize("seed", range(12))
def test_random_regions(seed: int) -> None:
    """Square values in a random DAG, several live-outs: joined or apart, the units in their order compute the region;
    so do the parts of what was joined."""
    rng = random.Random(seed)
    choices = [
        lambda a, b: a @ b * 0.3, lambda a, b: a + b, lambda a, b: rms(a), lambda a, b: F.silu(a) * b,
        lambda a, b: torch.softmax(a, -1), lambda a, b: a.T, lambda a, b: torch.cumprod(a, 0) * 0.3,
        lambda a, b: a - b.sum(0),
    ]  # fmt: skip
    values = random_dag(rng, choices, 12)
    outs = rng.choice([2, 3])

    def program(x: torch.Tensor, y: torch.Tensor) -> Any:
        return tuple(one * 1.5 for one in values(x, y)[-outs:])

    inputs = {"x": randn(4, 4, seed=seed), "y": randn(4, 4, seed=seed + 1)}
    region = record(program, inputs)
    joined = with_own_names(units(region))
    apart = tuple(one for unit in joined for one in (getattr(unit, "apart", ()) or (unit,)))
    wants = program(**{name: tensor.double() for name, tensor in inputs.items()})
    for cut_up in (joined, apart):
        env = run(region, cut_up, inputs)
        for live, expected in zip(region.live_outs, wants, strict=True):
            torch.testing.assert_close(env[live.value], expected, rtol=1e-4, atol=1e-5, check_dtype=False)


def test_what_reads_a_view_that_a_join_would_be_read_through_runs_between() -> None:
    """Of queries that are a view of a power, and keys that are computed of the same view."""

    def block(x: torch.Tensor) -> Any:
        rows = (x**2 * 0.25).reshape(-1, 8)
        keys = rows * 0.5 + torch.tanh(rows)
        queries = rows.mul(rows)
        return keys, queries, F.scaled_dot_product_attention(queries, keys, keys)

    inputs = {"x": randn(3, 4, 8)}
    region = record(block, inputs)
    computed = run(region, units(region), inputs)
    for live, expected in zip(region.live_outs, block(inputs["x"].double()), strict=True):
        torch.testing.assert_close(computed[live.value], expected)
