"""Regions cut into units: what is one unit, what is cut where; the units in their order compute the region."""

from __future__ import annotations

import random
from collections.abc import Callable
from typing import Any

import pytest
import torch
import torch.nn.functional as F
from mugraph.ir.ops import Kind
from mugraph.ir.region import PlainCalls, SearchUnit
from mugraph.units.growing import MOST_WITHOUT_PRODUCTS, prepared
from mugraph.units.search_units import single_units

from tests.engine.ops.harness import randn, record
from tests.engine.units.regions import agrees, cut, meta, random_dag, rms, units


def attention(q: torch.Tensor, k: torch.Tensor, v: torch.Tensor) -> torch.Tensor:
    return torch.softmax(q @ k.mT * 0.125, dim=-1) @ v


def adapter(x: torch.Tensor, a: torch.Tensor, b: torch.Tensor) -> torch.Tensor:
    return torch.relu(x @ a) @ b + x


WHOLE: dict[str, tuple[Callable[..., Any], dict[str, torch.Tensor]]] = {
    "norm and linear": (lambda x, g, w: F.linear(rms(x) * g, w),
                        {"x": meta(16, 4096), "g": meta(4096), "w": meta(6144, 4096)}),
    "gated mlp": (lambda x, a, b: F.silu(x @ a) * (x @ b),
                  {"x": meta(8, 4096), "a": meta(4096, 4096), "b": meta(4096, 4096)}),
    "norm and gated mlp": (lambda x, a, b: F.silu(rms(x) @ a) * (rms(x) @ b),
                           {"x": meta(8, 4096), "a": meta(4096, 4096), "b": meta(4096, 4096)}),
    "low-rank adapter": (lambda x, w, a, b: x @ w + (x @ a) @ b,
                         {"x": meta(16, 256), "w": meta(256, 4096), "a": meta(256, 16), "b": meta(16, 4096)}),
    "bottleneck": (adapter, {"x": meta(8, 4096), "a": meta(4096, 16), "b": meta(16, 4096)}),
    "normalised residual": (lambda x, h, a: rms(x + a * (rms(h) - x)),
                            {"x": meta(8, 4096), "h": meta(8, 4096), "a": meta(8, 4096)}),
    "attention": (attention, {"q": meta(8, 512, 64), "k": meta(8, 512, 64), "v": meta(8, 512, 64)}),
    "normalised attention": (lambda q, k, v: attention(rms(q), rms(k), v),
                             {"q": meta(2, 256, 64), "k": meta(2, 4096, 64), "v": meta(2, 4096, 64)}),
    "chain": (lambda a, b, d: (a @ b) @ d, {"a": meta(512, 1024), "b": meta(1024, 512), "d": meta(512, 256)}),
    "batched chain": (lambda a, b, d: torch.bmm(torch.bmm(a, b), d),
                      {"a": meta(8, 1024, 128), "b": meta(8, 128, 1024), "d": meta(8, 1024, 128)}),
}  # fmt: skip


@pytest.mark.parametrize("name", WHOLE)
def test_one_unit(name: str) -> None:
    fn, inputs = WHOLE[name]
    (unit,) = cut(fn, **inputs)
    assert isinstance(unit, SearchUnit)
    assert list(unit.outputs.values()) == [unit.calls[-1].outputs[0]]


def test_norm_for_several_linears_is_computed_in_each() -> None:
    cut_up = cut(
        lambda x, q, k, v: tuple(F.linear(h, w) for h in (rms(x),) for w in (q, k, v)),
        x=meta(16, 4096), q=meta(4096, 4096), k=meta(1024, 4096), v=meta(1024, 4096),
    )  # fmt: skip
    assert len(cut_up) == 3
    assert all(any(op.kind is Kind.SQRT for op in unit.program.ops) for unit in units(cut_up))


def test_norm_that_leaves_the_region_is_its_own_unit() -> None:
    def block(x: torch.Tensor, w: torch.Tensor) -> tuple[torch.Tensor, torch.Tensor]:
        h = rms(x)
        return h, F.linear(h, w)

    cut_up = cut(block, x=meta(16, 4096), w=meta(4096, 4096))
    assert [len([op for op in p.program.ops if op.kind is Kind.DOT]) for p in units(cut_up)] == [0, 1]


def test_gate_stays_with_the_products_before_it() -> None:
    def mlp(x: torch.Tensor, a: torch.Tensor, b: torch.Tensor, c: torch.Tensor) -> torch.Tensor:
        h = rms(x)
        return x + F.linear(F.silu(F.linear(h, a)) * F.linear(h, b), c)

    first, second = units(cut(mlp, x=meta(8, 4096), a=meta(14336, 4096), b=meta(14336, 4096), c=meta(4096, 14336)))
    assert any(op.fn == "silu" for op in first.program.ops)
    assert [op.kind for op in second.program.compute_ops] == [Kind.DOT, Kind.ADD]


def test_large_chain_is_two_products() -> None:
    cut_up = cut(lambda x, a, b: torch.bmm(F.silu(torch.bmm(x, a)), b),
                 x=meta(8, 8, 4096), a=meta(8, 4096, 4096), b=meta(8, 4096, 4096))  # fmt: skip
    assert [unit.program.compute_ops[-1].kind for unit in units(cut_up)] == [Kind.UNARY, Kind.DOT]


def test_two_exps_on_a_path_are_cut_apart() -> None:
    inputs = {"x": randn(4, 6), "w": randn(6, 6)}
    cut_up = agrees(lambda x, w: torch.softmax(torch.softmax(x @ w, -1) @ w, -1) @ w, inputs)
    assert len(units(cut_up)) == 2


def test_value_in_two_roles_is_cut_off() -> None:
    inputs = {"x": randn(4, 6), "wq": randn(6, 3), "wk": randn(6, 3, seed=1)}
    cut_up = agrees(lambda x, wq, wk: (lambda h: (h @ wq) @ (h @ wk).T)(rms(x)), inputs)
    assert len(units(cut_up)) >= 2


def test_plain_calls_stay_in_their_place() -> None:
    def rotary(x: torch.Tensor, w: torch.Tensor, cos: torch.Tensor) -> torch.Tensor:
        y = F.linear(x, w)
        return (y * cos + torch.logcumsumexp(y, -1)).sum(-1)

    cut_up = agrees(rotary, {"x": randn(4, 6), "w": randn(6, 6), "cos": randn(4, 6)})
    targets = [call.target for unit in cut_up if isinstance(unit, PlainCalls) for call in unit.calls]
    assert "torch.logcumsumexp" in targets
    assert len(units(cut_up)) == 2


def test_split_of_a_fused_projection() -> None:
    def attend(x: torch.Tensor, w: torch.Tensor) -> torch.Tensor:
        q, k, v = F.linear(x, w).view(2, 4, 3, 2, 3).permute(2, 0, 3, 1, 4).unbind(0)
        return F.scaled_dot_product_attention(q, k, v).transpose(1, 2).reshape(2, 4, 6)

    inputs = {"x": randn(2, 4, 6), "w": randn(18, 6)}
    (whole,) = units(agrees(attend, inputs))
    made = frozenset(value for call in whole.calls for value in call.outputs)
    projection, attention = agrees(attend, inputs, refused=[made])
    assert projection.calls[0].target == "torch.nn.functional.linear"
    assert isinstance(attention, SearchUnit)
    assert attention.calls[-1].target == "Tensor.reshape"


def test_rotation_is_a_part_of_attention() -> None:
    """Every part that a kernel reads is a view; each is made once."""
    rotated = [unit for unit in units(agrees(layer, LAYER)) if unit.views]
    assert any("torch.cat" in [call.target for call in unit.calls] for unit in rotated)
    for unit in rotated:
        made = [value for call in unit.views for value in call.outputs]
        assert len(set(made)) == len(made) == len(unit.view_values)


def test_fused_projection_by_chunks() -> None:
    def attend(x: torch.Tensor, w: torch.Tensor) -> torch.Tensor:
        q, k, v = F.linear(x, w).chunk(3, dim=-1)
        return attention(q, k, v)

    agrees(attend, {"x": randn(2, 4, 6), "w": randn(18, 6)})


def test_write_to_an_input_is_not_moved() -> None:
    def update(x: torch.Tensor, cache: torch.Tensor, w: torch.Tensor) -> torch.Tensor:
        before = x @ w + cache
        cache.mul_(2.0)
        return before.softmax(-1) @ w + cache

    inputs = {"x": randn(4, 6), "cache": randn(4, 6, seed=1), "w": randn(6, 6)}
    region = record(update, {name: tensor.clone() for name, tensor in inputs.items()})
    order = [call.target for unit in single_units(region) for call in unit.calls]
    write = order.index("Tensor.mul_")
    assert "Tensor.add" in {target.replace("__", "") for target in order[:write]}
    writing = [p for p in single_units(region) if isinstance(p, PlainCalls) and p.calls[-1].target == "Tensor.mul_"]
    assert writing
    assert not any("softmax" in call.target for p in writing for call in p.calls)


def test_dead_calls_are_left_out() -> None:
    def wasteful(x: torch.Tensor, w: torch.Tensor) -> torch.Tensor:
        x.cumprod(0)
        return x @ w

    assert [type(unit) for unit in cut(wasteful, x=randn(4, 6), w=randn(6, 6))] == [SearchUnit]


def layer(x: torch.Tensor, **w: torch.Tensor) -> torch.Tensor:
    h = rms(x) * w["g"]
    q, k, v = (F.linear(h, w[n]).view(1, 5, 2, 4).transpose(1, 2) for n in ("q", "k", "v"))
    q, k = (t * w["cos"] + torch.cat((-t[..., 2:], t[..., :2]), -1) * w["sin"] for t in (q, k))
    x = x + F.linear(F.scaled_dot_product_attention(q, k, v).transpose(1, 2).reshape(1, 5, 8), w["o"])
    h = rms(x) * w["g"]
    return x + F.linear(F.silu(F.linear(h, w["a"])) * F.linear(h, w["b"]), w["c"])


LAYER = {
    "x": randn(1, 5, 8), "g": randn(8), "cos": randn(5, 4), "sin": randn(5, 4, seed=1), "c": randn(8, 12) * 0.3,
    **{name: randn(8, 8, seed=i) * 0.3 for i, name in enumerate("qkvo")},
    **{name: randn(12, 8, seed=i) * 0.3 for i, name in enumerate("ab")},
}  # fmt: skip


@pytest.mark.parametrize("limit", [1, 3, 6, 12, 30])
def test_decoder_layer(limit: int) -> None:
    cut_up = agrees(layer, LAYER, max_ops=limit)
    for unit in units(cut_up):
        kinds = [op.kind for op in unit.program.ops]
        size = len(unit.program.compute_ops)
        most = limit if Kind.DOT in kinds else max(limit, MOST_WITHOUT_PRODUCTS)
        assert size <= most or (Kind.EXP in kinds and (size <= 20 or size - prepared(unit.program) <= 16))
        assert Kind.DOT in kinds or Kind.SUM in kinds
        assert len(unit.program.outputs) == 1


@pytest.mark.parametrize("seed", range(40))
def test_random_regions(seed: int) -> None:
    """Square values in a random DAG of lowerable and other calls, one or two live-outs, any limit."""
    rng = random.Random(seed)
    choices = [
        lambda a, b: a @ b * 0.3, lambda a, b: a + b, lambda a, b: a * b, lambda a, b: rms(a), lambda a, b: F.silu(a),
        lambda a, b: torch.softmax(a, -1), lambda a, b: a.T, lambda a, b: a.view(2, 2, 4).transpose(0, 1).reshape(4, 4),
        lambda a, b: torch.cumprod(a, 0) * 0.3, lambda a, b: torch.cat((a[:, 2:], b[:, :2]), -1),
        lambda a, b: a - b.sum(0),
    ]  # fmt: skip
    values = random_dag(rng, choices, 14)
    outs = rng.choice([1, 2])

    def program(x: torch.Tensor, y: torch.Tensor) -> Any:
        pool = values(x, y)
        return pool[-1] * 1.5 if outs == 1 else (pool[-1] * 1.5, pool[-2] + 1.0)

    agrees(program, {"x": randn(4, 4, seed=seed), "y": randn(4, 4, seed=seed + 1)}, max_ops=rng.choice([2, 5, 12]))
