"""PyTorch's attention of grouped queries: keys and values that people repeat are given to it as they are."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pytest
import torch
import torch.nn.functional as F
from mugraph.ir.calls import Call, Ref
from mugraph.ir.region import PlainCalls, Region
from mugraph.ops.algebra.registry import canonical
from mugraph.solve.pytorch import kept_us
from mugraph.targets import TARGETS
from mugraph.trace.regions.replay import replay
from mugraph.units.grouped_heads import as_written, with_grouped_heads
from mugraph.units.region_units import cut_region

from tests.engine.ops.harness import randn, record

H16 = torch.float16


def given(query: int = 6, keys: int = 2, length: int = 8, width: int = 16, dtype: Any = H16) -> dict[str, torch.Tensor]:
    shapes = {"q": (2, query, 8, width), "k": (2, keys, length, width), "v": (2, keys, length, width)}
    return {name: randn(*shape, seed=seed).to(dtype) for seed, (name, shape) in enumerate(shapes.items())}


def repeat_kv(x: torch.Tensor, times: int) -> torch.Tensor:
    b, h, t, d = x.shape
    return x[:, :, None, :, :].expand(b, h, times, t, d).reshape(b, h * times, t, d)


def interleaved(q: torch.Tensor, k: torch.Tensor, v: torch.Tensor) -> torch.Tensor:
    k, v = k.repeat_interleave(3, dim=1), torch.repeat_interleave(v, 3, dim=-3)
    return F.scaled_dot_product_attention(q, k, v, is_causal=True)


def expanded(q: torch.Tensor, k: torch.Tensor, v: torch.Tensor) -> torch.Tensor:
    return F.scaled_dot_product_attention(q, repeat_kv(k, 3), repeat_kv(v, 3), None, 0.0, True)


def scaled(q: torch.Tensor, k: torch.Tensor, v: torch.Tensor) -> torch.Tensor:
    return F.scaled_dot_product_attention(query=q, key=repeat_kv(k, 3), value=repeat_kv(v, 3), scale=0.3)


def positions_first(q: torch.Tensor, k: torch.Tensor, v: torch.Tensor) -> torch.Tensor:
    k, v = (x.transpose(1, 2).repeat_interleave(3, dim=2).transpose(1, 2) for x in (k, v))
    return F.scaled_dot_product_attention(q, k, v, is_causal=True)


def one_head(q: torch.Tensor, k: torch.Tensor, v: torch.Tensor) -> torch.Tensor:
    k, v = (x[:, :1].expand(-1, 6, -1, -1) for x in (k, v))
    return F.scaled_dot_product_attention(q, k, v)


def attention_of(region: Region) -> Call:
    return next(call for call in region.calls if canonical(call.target).endswith("scaled_dot_product_attention"))


def is_grouped(region: Region) -> bool:
    return attention_of(with_grouped_heads(region)).kwargs.get("enable_gqa") is True


@pytest.mark.parametrize("fn", [interleaved, expanded, scaled, positions_first, one_head], ids=lambda fn: fn.__name__)
def test_repeated_heads_are_read_as_they_are(fn: Callable[..., torch.Tensor]):
    inputs = given()
    region = record(fn, inputs)
    assert is_grouped(region)
    region, parts = cut_region(region, [frozenset(attention_of(region).outputs)])
    plain = [call for part in parts if isinstance(part, PlainCalls) for call in part.calls]
    assert not any("repeat" in call.target or "reshape" in call.target for call in plain)
    env = replay(plain, {live.value: inputs[live.expression].double() for live in region.live_ins})
    want = fn(**{name: one.double() for name, one in inputs.items()})
    torch.testing.assert_close(env[region.live_outs[0].value], want)


def repeated_otherwise(q: torch.Tensor, k: torch.Tensor, v: torch.Tensor) -> torch.Tensor:
    """Heads of a group are not neighbours."""
    return F.scaled_dot_product_attention(q, k.repeat(1, 3, 1, 1), v.repeat(1, 3, 1, 1), is_causal=True)


def mixed(q: torch.Tensor, k: torch.Tensor, v: torch.Tensor) -> torch.Tensor:
    return F.scaled_dot_product_attention(q, k.repeat_interleave(3, dim=1), v.repeat(1, 3, 1, 1), is_causal=True)


def masked(q: torch.Tensor, k: torch.Tensor, v: torch.Tensor, mask: torch.Tensor) -> torch.Tensor:
    return F.scaled_dot_product_attention(q, repeat_kv(k, 3), repeat_kv(v, 3), mask)


@pytest.mark.parametrize(
    ("fn", "inputs"),
    [
        (repeated_otherwise, given()),
        (mixed, given()),
        (masked, {**given(), "mask": randn(8, 8).to(H16)}),  # PyTorch copies them out for a kernel that takes masks
        (interleaved, given(dtype=torch.float32)),
        (interleaved, given(length=11)),  # causal, with more keys than queries
        (scaled, given(width=264)),
    ],
    ids=["other heads", "both", "mask", "float32", "more keys", "wide"],
)
def test_what_no_fused_kernel_takes_stays(fn: Callable[..., torch.Tensor], inputs: dict[str, torch.Tensor]):
    region = record(fn, inputs)
    assert with_grouped_heads(region) == region


def test_the_users_own_call_stays():
    def grouped(q: torch.Tensor, k: torch.Tensor, v: torch.Tensor) -> torch.Tensor:
        return F.scaled_dot_product_attention(q, k, v, is_causal=True, enable_gqa=True)

    region = record(grouped, given())
    assert with_grouped_heads(region) == region


def test_the_copies_are_counted_for_the_users_code_alone():
    inputs = {name: one.repeat(1, 1, 128, 8) for name, one in given().items()}
    region = record(expanded, inputs)
    changed = with_grouped_heads(region)
    plain = [attention_of(changed)]
    usual, found = as_written(region, plain)
    assert usual == list(region.calls)
    assert [one.call for one in found] == plain
    assert plain[0].args[1:] == (Ref(region.live_ins[1].value), Ref(region.live_ins[2].value))
    kept = kept_us(region, plain, None, TARGETS["h200"])
    assert kept is not None
    written, ours = kept
    assert 4.0 < written.eager_us - ours < 12.0  # two kernels
