"""Products of float8 matrices with scales: what is said of them, in every spelling; and what is refused."""

from __future__ import annotations

import random
from collections.abc import Callable
from typing import Any

import pytest
import torch
import torch.nn.functional as F
from mugraph.codegen.aot import compile_for
from mugraph.codegen.lower import lower
from mugraph.ir.block import Schedule
from mugraph.ir.ops import Kind
from mugraph.ir.region import SearchUnit
from mugraph.ops.algebra.refusals import NotLowerable
from mugraph.search.direct import as_block
from mugraph.units.outside import outside_words
from torch.nn.functional import ScalingType, SwizzleType

from tests.engine.ops.harness import evaluate, lower_region, parts, record, well_formed
from tests.engine.units.regions import cut

E4M3, E5M2 = torch.float8_e4m3fn, torch.float8_e5m2
ONE, ROWS = ScalingType.TensorWise, ScalingType.RowWise
Tensors = dict[str, torch.Tensor]
Made = Callable[..., torch.Tensor]


def drawn(rng: random.Random, *, rows: bool, first: torch.dtype = E4M3, second: torch.dtype = E4M3) -> Tensors:
    """a [m, k], w [n, k], their scales, a bias"""
    torch.manual_seed(rng.randrange(1 << 30))
    m, k, n = rng.choice((1, 5, 16, 33)), rng.choice((16, 48)), rng.choice((16, 32, 80))
    one = rng.choice(((), (1,), (1, 1)))
    sa, sb = (torch.rand(m, 1), torch.rand(1, n)) if rows else (torch.rand(one), torch.rand(one))
    bias = torch.randn(n).to(torch.bfloat16)
    return {"a": torch.randn(m, k).to(first), "w": torch.randn(n, k).to(second), "sa": sa, "sb": sb, "bias": bias}


def exactly(of: Tensors, *, bias: bool = False) -> torch.Tensor:
    wide = {name: tensor.double() for name, tensor in of.items()}
    product = wide["a"] @ wide["w"].T * wide["sa"] * wide["sb"]
    return product + wide["bias"] if bias else product


def by_position(a: Any, w: Any, sa: Any, sb: Any, bias: Any) -> torch.Tensor:
    return torch._scaled_mm(a, w.t(), sa, sb, bias, None, torch.bfloat16, True)


def by_keyword(a: Any, w: Any, sa: Any, sb: Any, bias: Any) -> torch.Tensor:
    return torch._scaled_mm(
        input=a, mat2=w.mT, out_dtype=torch.bfloat16, bias=bias, scale_b=sb, scale_a=sa, use_fast_accum=False
    )


def by_recipe(recipe: Any) -> Made:
    def function(a: Any, w: Any, sa: Any, sb: Any, bias: Any) -> torch.Tensor:
        return F.scaled_mm(a, w.t(), sa, recipe, sb, recipe, bias=bias)

    return function


def lowered_as(function: Made, tensors: Tensors) -> torch.Tensor:
    """What the program of a function computes in float64."""
    region = record(function, tensors)
    lowered = lower_region(region)
    well_formed(lowered)
    by_value = {live.value: tensors[live.expression] for live in region.live_ins}
    (found,) = evaluate(lowered.program, parts(lowered, by_value)).values()
    return found


@pytest.mark.parametrize("seed", range(6))
@pytest.mark.parametrize("rows", [False, True], ids=["tensors", "rows"])
def test_every_spelling(rows: bool, seed: int) -> None:
    tensors = drawn(random.Random(seed), rows=rows)
    for function in (by_position, by_keyword, by_recipe(ROWS if rows else ONE)):
        got = lowered_as(function, tensors)
        expected = exactly(tensors, bias=True)
        torch.testing.assert_close(got.reshape(expected.shape), expected)
        torch.testing.assert_close(function(**tensors).double(), expected, rtol=2**-7, atol=2**-7)


@pytest.mark.parametrize("out", [torch.float16, torch.bfloat16, torch.float32])
@pytest.mark.parametrize("types", [(E4M3, E4M3), (E5M2, E4M3), (E4M3, E5M2)])
def test_types(types: tuple[torch.dtype, torch.dtype], out: torch.dtype) -> None:
    tensors = drawn(random.Random(str((types, out))), rows=False, first=types[0], second=types[1])
    del tensors["bias"]
    got = lowered_as(lambda a, w, sa, sb: torch._scaled_mm(a, w.t(), sa, sb, out_dtype=out), tensors)
    torch.testing.assert_close(got.reshape(exactly(tensors).shape), exactly(tensors))


def test_what_is_around_is_one_unit_with_it() -> None:
    tensors = drawn(random.Random(3), rows=True)
    n = tensors["w"].shape[0]
    tensors |= {"g": torch.randn(n).bfloat16()}

    def function(a: Any, w: Any, sa: Any, sb: Any, bias: Any, g: Any) -> torch.Tensor:
        return F.rms_norm(F.silu(by_position(a, w, sa, sb, bias)), (n,), g)

    (unit,) = cut(function, **tensors)
    assert isinstance(unit, SearchUnit)
    assert sum(op.kind is Kind.DOT for op in unit.program.ops) == 1


def refused(function: Made, **tensors: torch.Tensor) -> str:
    with pytest.raises(NotLowerable) as refusal:
        lower_region(record(function, tensors))
    return str(refusal.value)


A, W = torch.randn(32, 256).to(E4M3), torch.randn(48, 256).to(E4M3)
ONES = {"a": A, "w": W, "sa": torch.ones(()), "sb": torch.ones(())}


def test_a_scale_of_the_result_is_refused() -> None:
    def function(a: Any, w: Any, sa: Any, sb: Any) -> torch.Tensor:
        return torch._scaled_mm(a, w.t(), sa, sb, scale_result=sb, out_dtype=torch.bfloat16)

    assert "a scale of its result" in refused(function, **ONES)


def test_a_result_of_eight_bits_is_refused() -> None:
    assert "gives f8e4m3" in refused(lambda a, w, sa, sb: torch._scaled_mm(a, w.t(), sa, sb), **ONES)


def test_what_is_refused_is_told_of() -> None:
    def function(a: Any, w: Any, sa: Any, sb: Any) -> torch.Tensor:
        return torch._scaled_mm(a, w.t(), sa, sb, scale_result=sb, out_dtype=torch.bfloat16)

    assert outside_words(record(function, ONES)) == "torch._scaled_mm in line 1 is outside the algebra"
    assert outside_words(record(by_position, {**ONES, "bias": torch.ones(48).bfloat16()})) == ""


def with_meta_scales(function: Made, one: tuple[int, ...], other: tuple[int, ...]) -> str:
    """On tensors without numbers: a CPU has no kernel for it. Scales lie column by column."""
    tensors = {"a": A, "w": W, "sa": torch.ones(one[::-1]).t(), "sb": torch.ones(other[::-1]).t()}
    return refused(function, **{name: tensor.to("meta") for name, tensor in tensors.items()})


def test_scales_of_blocks_are_refused() -> None:
    def called(a: Any, w: Any, sa: Any, sb: Any) -> torch.Tensor:
        return torch._scaled_mm(a, w.t(), sa, sb.t(), out_dtype=torch.bfloat16)

    assert "scales of blocks, of shapes (32, 2) and (2, 48)" in with_meta_scales(called, (32, 2), (48, 2))

    def named(a: Any, w: Any, sa: Any, sb: Any) -> torch.Tensor:
        return F.scaled_mm(a, w.t(), sa, ScalingType.BlockWise1x128, sb, ScalingType.BlockWise1x128)

    assert "the recipe BlockWise1x128" in with_meta_scales(named, (32, 2), (48, 2))


def test_swizzled_scales_are_refused() -> None:
    def named(a: Any, w: Any, sa: Any, sb: Any) -> torch.Tensor:
        return F.scaled_mm(a, w.t(), sa, ONE, sb, ONE, swizzle_a=SwizzleType.SWIZZLE_32_4_4)

    assert "swizzled" in with_meta_scales(named, (), ())


def test_a_kernel_multiplies_in_float16() -> None:
    """It has all numbers of float8; in float32, products would take tf32, at half the rate."""
    tensors = {"a": A, "w": W, "sa": torch.ones(32, 1), "sb": torch.ones(1, 48)}

    def function(a: Any, w: Any, sa: Any, sb: Any) -> torch.Tensor:
        return F.silu(torch._scaled_mm(a, w.t(), sa, sb, out_dtype=torch.bfloat16))

    block = as_block(lower_region(record(function, tensors)).program)
    rows, columns = (next(t for t in block.tensors if t.name == name).axes[0] for name in ("a", "w"))
    kernel = lower(block, Schedule(((rows, 16), (columns, 16)), num_warps=4))
    assert kernel.jit.count(".to(tl.float16)") == 2
    assert "tf32" not in kernel.jit
    assert compile_for(kernel, 90)
