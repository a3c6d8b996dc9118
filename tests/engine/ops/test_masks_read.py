"""Attention under masks that are inputs: PyTorch's numbers, also in rows of which nothing is seen."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace

import pytest
import torch
import torch.nn.functional as F
from mugraph.ir.ops import Kind
from mugraph.search.direct import as_block
from mugraph.verification.verifier import verify_topology

from tests.engine.ops.harness import check, randn

Q, K, V = randn(2, 4, 3, 8), randn(2, 4, 10, 8, seed=1), randn(2, 4, 10, 6, seed=2)
SEEN = randn(2, 1, 3, 10, seed=3) > 0
INF = float("inf")


def one_hidden(mask: torch.Tensor) -> torch.Tensor:
    """With a row in which nothing is seen."""
    hidden = mask.clone()
    hidden[..., 1, :] = False
    return hidden


ROWS = SEEN[0, 0]
assert ROWS.any(-1).all()
MASKS = {
    "of rows and columns": ROWS,
    "of each sequence": SEEN,
    "of columns": ROWS[:1],
    "of rows": ROWS[:, :1],
    "a row is hidden": one_hidden(SEEN),
    "all is hidden": torch.zeros_like(ROWS),
}


@pytest.mark.parametrize("added", [False, True], ids=["truth values", "added"])
@pytest.mark.parametrize("name", MASKS)
def test_a_mask_is_read(name: str, added: bool) -> None:
    mask = MASKS[name]
    if added:
        mask = randn(*mask.shape, seed=5).masked_fill(~mask, -INF)
    program = check(
        lambda q, k, v, mask: F.scaled_dot_product_attention(q, k, v, attn_mask=mask),
        {"q": Q, "k": K, "v": V, "mask": mask},
    ).program
    assert verify_topology(program, as_block(program)).passed


def test_groups_of_queries_under_a_mask() -> None:
    check(
        lambda q, k, v, m: F.scaled_dot_product_attention(q, k, v, attn_mask=m, enable_gqa=True),
        {"q": Q, "k": K[:, :2], "v": V[:, :2], "m": one_hidden(SEEN)},
    )


def test_a_mask_that_is_computed_from_a_place() -> None:
    """As gpt-fast's layers see what is cached so far: places up to a position that is a tensor."""

    def program(q: torch.Tensor, k: torch.Tensor, v: torch.Tensor, at: torch.Tensor) -> torch.Tensor:
        seen = torch.arange(10) <= at
        return F.scaled_dot_product_attention(q, k, v, attn_mask=seen[None, None, None])

    for place in (0, 4, 9):
        check(program, {"q": Q, "k": K, "v": V, "at": torch.tensor([place])})
        check(program, {"q": Q, "k": K, "v": V, "at": torch.tensor(place)})


def softened(scores: torch.Tensor) -> torch.Tensor:
    return scores.softmax(-1)


BY_HAND: dict[str, Callable[[torch.Tensor, torch.Tensor], torch.Tensor]] = {
    "masked_fill": lambda s, m: softened(s.masked_fill(~m, -INF)),
    "where": lambda s, m: softened(torch.where(m, s, -INF)),
    "where, the other way round": lambda s, m: softened(torch.where(~m, -INF, s)),
    "scaled afterwards": lambda s, m: softened(s.masked_fill(~m, -INF) * 0.3),
    "negated before": lambda s, m: softened((-s).masked_fill(~m, -INF)),
    "a causal mask as well": lambda s, m: softened(
        s.masked_fill(~m, -INF).masked_fill(torch.ones(3, 10).tril(7) == 0, -INF)
    ),
    "two that are read": lambda s, m: softened(s.masked_fill(~m, -INF).masked_fill(~(m | (s > 0)), -INF)),
    "the maximum taken off": lambda s, m: _stable(s.masked_fill(~m, -INF)),
    "a bias after": lambda s, m: softened(s.masked_fill(~m, -INF) + 0.5 * s),
}


def _stable(scores: torch.Tensor) -> torch.Tensor:
    numbers = torch.exp(scores - scores.amax(-1, keepdim=True))
    return numbers / numbers.sum(-1, keepdim=True)


@pytest.mark.parametrize("name", BY_HAND)
def test_minus_infinity_by_a_condition(name: str) -> None:
    weights = BY_HAND[name]
    program = check(
        lambda q, k, v, m: weights(q @ k.mT, m) @ v, {"q": Q, "k": K, "v": V, "m": SEEN | (randn(3, 10) > 1)}
    ).program
    kinds = [op.kind for op in program.ops]
    assert Kind.SEEN in kinds
    assert Kind.AMAX not in kinds


def test_the_other_half_of_a_mask_is_refuted() -> None:
    program = check(
        lambda s, m, v: softened(s.masked_fill(~m, -INF)) @ v, {"s": randn(3, 10), "m": ROWS, "v": randn(10, 4)}
    ).program
    block = as_block(program)
    assert verify_topology(program, block).passed
    (seen,) = (op for op in block.ops if op.kind is Kind.SEEN)
    changed = [replace(op, kind=Kind.KEPT) if op is seen else op for op in block.ops]
    assert not verify_topology(program, replace(block, ops=tuple(changed))).passed
    unmasked = [
        replace(op, inputs=tuple(seen.inputs[1] if name == seen.name else name for name in op.inputs))
        for op in block.ops
        if op is not seen
    ]
    assert not verify_topology(program, replace(block, ops=tuple(unmasked))).passed
