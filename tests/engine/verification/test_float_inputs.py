"""Inputs of the float test leave a program's values where float64 can tell them apart."""

from __future__ import annotations

from typing import Any

import pytest
import torch
from mugraph.verification import float_inputs, float_specials
from mugraph.verification.float_inputs import make_inputs
from mugraph.verification.roundings import Perturbed
from mugraph.verification.torch_reference import evaluate, outputs

from tests.engine.ops.harness import lower_region, record
from tests.engine.units.regions import cut, meta, units


def attention_scores(x: torch.Tensor, w: torch.Tensor) -> torch.Tensor:
    return torch.softmax(x @ w, dim=-1)


@pytest.mark.parametrize("terms", [64, 1 << 15])
def test_logits_that_sum_up_a_great_many_products_are_bounded(terms: int) -> None:
    """Sums of 2^15 products reach 670, where the square of exp is infinite in float64 from 355 on."""
    x, w = meta(64, terms, dtype=torch.float32), meta(terms, 64, dtype=torch.float32)
    (unit,) = units(cut(attention_scores, x=x, w=w))
    drawn = make_inputs(unit.program, "normal", torch.Generator().manual_seed(0))
    assert drawn is not None
    (result,) = outputs(unit.program, evaluate(unit.program, drawn.inputs)).values()
    random = Perturbed(unit.program, torch.Generator().manual_seed(1))
    (disturbed,) = outputs(unit.program, evaluate(unit.program, drawn.inputs, random)).values()
    assert result.isfinite().all()
    assert disturbed.isfinite().all()
    products = drawn.inputs["x"].double() @ drawn.inputs["w"].double()
    assert products.abs().max() < 350.0
    assert products.std() > 1.0


def by_call(q: torch.Tensor, k: torch.Tensor, v: torch.Tensor, m: torch.Tensor) -> torch.Tensor:
    return torch.nn.functional.scaled_dot_product_attention(q, k, v, attn_mask=m)


def by_hand(q: torch.Tensor, k: torch.Tensor, v: torch.Tensor, m: torch.Tensor) -> torch.Tensor:
    return torch.softmax((q @ k.mT).masked_fill(m, float("-inf")), dim=-1) @ v


@pytest.mark.parametrize("function", [by_call, by_hand])
@pytest.mark.parametrize("shape", [(9, 12), (3, 1, 9, 12), (12,)])
def test_logits_behind_masks_are_drawn(function: Any, shape: tuple[int, ...]) -> None:
    """What is not seen is minus infinity, and not too large a number. A query that sees nothing is drawn where
    the program says what it has: zeros."""
    tensors = {"q": meta(3, 2, 9, 16), "k": meta(3, 2, 12, 16), "v": meta(3, 2, 12, 16)}
    mask = meta(*shape, dtype=torch.bool)
    (unit,) = units(cut(function, **tensors, m=mask))
    drawn = make_inputs(unit.program, "normal", torch.Generator().manual_seed(0))
    assert drawn is not None
    (result,) = drawn.eager.values()
    assert result.isfinite().all()
    sees = drawn.inputs["m"].bool() if function is by_call else ~drawn.inputs["m"].bool()
    assert sees.any()
    assert not sees.all()
    some = sees.any(-1)
    assert some.all() if function is by_hand or shape == (12,) else not some.all()


def test_a_sum_that_is_large_whatever_its_inputs_are_is_tested() -> None:
    """Of 30,000 sigmoids of float16 it is about 15,000, less than sixteen times below the type's largest number."""

    def summed(x: torch.Tensor) -> torch.Tensor:
        return torch.sigmoid(x).sum(-1)

    (unit,) = units(cut(summed, x=meta(4, 30_000)))
    assert make_inputs(unit.program, "normal", torch.Generator().manual_seed(0)) is not None
    (unit,) = units(cut(summed, x=meta(4, 100_000)))
    assert make_inputs(unit.program, "normal", torch.Generator().manual_seed(0)) is None


def test_of_gigabytes_what_is_too_large_for_the_least_inputs_is_not_drawn_again(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    drawn: list[str] = []
    draw = float_inputs._draw

    def counted(*given: Any) -> torch.Tensor:
        drawn.append(given[2])
        return draw(*given)

    def summed(x: torch.Tensor) -> torch.Tensor:
        return torch.sigmoid(x).sum(-1)

    def product(x: torch.Tensor) -> torch.Tensor:
        return (x * 300.0 * x).sum(-1)

    monkeypatch.setattr(float_inputs, "_draw", counted)
    monkeypatch.setattr(float_inputs, "LARGE", 1_000)
    generator = torch.Generator().manual_seed(0)
    (unit,) = units(cut(summed, x=meta(4, 200_000)))
    assert make_inputs(unit.program, "normal", generator) is None
    assert len(drawn) == 2 * len(float_inputs._HEADROOM)
    (unit,) = units(cut(product, x=meta(4, 2_000)))
    drawn.clear()
    found = make_inputs(unit.program, "rows", generator)
    assert found is not None, "smaller inputs will do"
    assert len(drawn) > 2
    assert found.inputs["x"].nan_to_num().abs().max() > 4.0**-10, "and not the least"


def step_of_adam(p: torch.Tensor, g: torch.Tensor, m: torch.Tensor, v: torch.Tensor) -> torch.Tensor:
    m, v = 0.9 * m + 0.1 * g, 0.999 * v + 0.001 * g * g
    return p - 1e-3 * m / (v.sqrt() + 1e-8)


def test_what_a_root_is_of_is_drawn_positive_where_it_has_to_be() -> None:
    """Second moments, which no square is near: of numbers of both signs no step of Adam is a number."""
    program = lower_region(record(step_of_adam, {name: torch.ones(16, 8) for name in "pgmv"})).program
    for scenario in float_inputs.scenarios(program):
        assert scenario in float_specials.SPECIALS or make_inputs(program, scenario, torch.Generator()) is not None


def with_a_number(x: torch.Tensor, w: torch.Tensor, loss: torch.Tensor) -> torch.Tensor:
    return loss + torch.softmax(x @ w, dim=-1).square().sum()


def test_a_single_number_is_an_input() -> None:
    x, w, loss = (torch.empty(shape, device="meta") for shape in ((16, 8), (8, 12), ()))
    found = units(cut(with_a_number, x=x, w=w, loss=loss))
    program = next(unit.program for unit in found if any(not tensor.dims for tensor in unit.program.tensors))
    for scenario in float_inputs.scenarios(program):
        assert scenario in float_specials.SPECIALS or make_inputs(program, scenario, torch.Generator()) is not None


def decayed(s: torch.Tensor, g: torch.Tensor, kv: torch.Tensor) -> torch.Tensor:
    return s * g.exp() + kv


def attended(s: torch.Tensor, g: torch.Tensor, kv: torch.Tensor) -> torch.Tensor:
    return torch.softmax(s + g, dim=-1) * kv


@pytest.mark.parametrize("dtype", [torch.float32, torch.bfloat16, torch.float16])
def test_an_exponential_that_nothing_normalises_stays_in_range(dtype: torch.dtype) -> None:
    """A state that decays: where PyTorch's exponential is infinite, a kernel's is as well. A softmax's is not."""
    tensors = {name: torch.empty(12, 40, dtype=dtype, device="meta") for name in ("s", "g", "kv")}
    program = lower_region(record(decayed, tensors)).program
    for scenario in float_inputs.scenarios(program):
        drawn = make_inputs(program, scenario, torch.Generator().manual_seed(0))
        if scenario in ("NaN", "infinite"):
            continue
        assert drawn is not None, scenario
        assert drawn.inputs["g"].exp().isfinite().all(), scenario
        assert drawn.inputs["g"].float().abs().max() > 4 or scenario != "large logits"
    program = lower_region(record(attended, tensors)).program
    drawn = make_inputs(program, "large logits", torch.Generator().manual_seed(0))
    assert drawn is not None
    assert (drawn.inputs["s"].double() + drawn.inputs["g"].double()).max() > 88
