"""Concatenations of unlike lengths: a sum of the operands, each with zeros where it has no elements."""

from __future__ import annotations

import random
from collections.abc import Callable

import pytest
import torch
import torch.nn.functional as F
from mugraph.ir.ops import Kind
from mugraph.ops.algebra.refusals import NotLowerable

from tests.engine.ops.harness import check, lower_region, randn, record


def test_a_row_behind_a_cache() -> None:
    """The cache is read where it is, the row is put in its place by a mask."""
    program = check(
        lambda c, k, q: torch.cat((c, k)) @ q, {"c": randn(23, 6), "k": randn(1, 6), "q": randn(6, 3)}
    ).program
    assert sorted(program.sizes.values()) == [3, 6, 24]
    (cache,) = (tensor for tensor in program.tensors if tensor.windows)
    assert (cache.source, cache.windows[0].pad, cache.windows[0].rest) == ("c", 0, -1)
    assert [(op.value, op.columns) for op in program.ops if op.kind is Kind.MASK] == [(-23.0, ())]


def test_several_rows_behind_a_cache_take_no_masks() -> None:
    program = check(
        lambda c, k, q: torch.cat((c, k)) @ q, {"c": randn(23, 6), "k": randn(4, 6), "q": randn(6, 3)}
    ).program
    assert not any(op.kind is Kind.MASK for op in program.ops)
    assert {tensor.source: (w.pad, w.rest) for tensor in program.tensors for w in tensor.windows} == {
        "c": (0, -4), "k": (23, 0),
    }  # fmt: skip


def test_a_rotated_row_and_parts_of_a_cache() -> None:
    """Along its columns the cache is read in halves, along its rows through a window."""

    def scores(q: torch.Tensor, c: torch.Tensor, k: torch.Tensor, cos: torch.Tensor, sin: torch.Tensor) -> torch.Tensor:
        def turned(x: torch.Tensor) -> torch.Tensor:
            a, b = x.chunk(2, -1)
            return x * cos + torch.cat((-b, a), -1) * sin

        return turned(q) @ torch.cat((c, turned(k)), 1).mT

    inputs = {"q": randn(2, 1, 8), "c": randn(2, 13, 8), "k": randn(2, 1, 8), "cos": randn(1, 8), "sin": randn(1, 8)}
    program = check(scores, inputs).program
    halves = [tensor for tensor in program.tensors if tensor.source.startswith("c[")]
    assert [tensor.source for tensor in halves] == ["c[..., :4]", "c[..., 4:]"]
    assert all(tensor.windows and tensor.shape(program.sizes) == (2, 13, 4) for tensor in halves)


def test_a_part_of_a_concatenation() -> None:
    inputs = {"a": randn(11, 3), "b": randn(1, 3), "w": randn(3, 2)}
    for part in (slice(2, 9), slice(None, 12), slice(None, 5), slice(11, None)):
        check(lambda a, b, w, part=part: torch.cat((a * 2, b))[part] @ w, inputs)


def test_the_largest_of_unlike_lengths_below_zero() -> None:
    check(lambda a, b: torch.cat((a, b), -1).amax(-1), {"a": -randn(3, 13).abs() - 1, "b": -randn(3, 1).abs() - 1})


def test_what_one_operand_divides_by_is_not_zero_beside_it() -> None:
    """The masks leave out what is computed of the zeros."""

    def joined(a: torch.Tensor, b: torch.Tensor) -> torch.Tensor:
        return torch.cat((a, b / (b.square() + 0.5)), 0).sum(1)

    check(joined, {"a": randn(14, 3), "b": randn(5, 3)})


USES: list[Callable[[torch.Tensor, torch.Tensor], torch.Tensor]] = [
    lambda x, w: x * 2.0 + 1.0,
    lambda x, w: x.sum(-1),
    lambda x, w: x.sum(0),
    lambda x, w: x.square().mean((0, 1)),
    lambda x, w: torch.softmax(x, 1),
    lambda x, w: F.silu(x) * x,
    lambda x, w: x * w.mean(),
    lambda x, w: x.transpose(0, 1) * 0.5,
]


@pytest.mark.parametrize("seed", range(60))
def test_random_concatenations(seed: int) -> None:
    """Of 2 to 4 operands of any lengths along any dimension, read as they are or computed before, used in many ways."""
    rng = random.Random(seed)
    dim = rng.randrange(3)
    shape = [rng.choice((2, 3, 5)) for _ in range(3)]
    lengths = [rng.choice((1, 2, 3, 5, 7, 11, 13)) for _ in range(rng.randint(2, 4))]
    while sum(lengths) <= 8:
        lengths.append(rng.choice((5, 7, 11)))
    sizes = [[*shape[:dim], length, *shape[dim + 1 :]] for length in lengths]
    inputs = {f"x{i}": randn(*size, seed=seed + i) for i, size in enumerate(sizes)}
    changed = [rng.random() < 0.4 for _ in lengths]
    use = rng.choice(USES)

    def joined(**tensors: torch.Tensor) -> torch.Tensor:
        parts = [t * t - 0.25 if change else t for t, change in zip(tensors.values(), changed, strict=True)]
        return use(torch.cat(parts, dim - rng_shift), next(iter(tensors.values())))

    rng_shift = 3 if rng.random() < 0.5 else 0
    check(joined, inputs)


def test_minus_infinity_is_not_added_to() -> None:
    def attend(x: torch.Tensor, m: torch.Tensor, s: torch.Tensor) -> torch.Tensor:
        hidden = s.masked_fill(torch.ones(5, 12).triu(1).bool(), float("-inf"))
        return torch.softmax(torch.cat((hidden, x), -1), -1) @ m

    with pytest.raises(NotLowerable):
        lower_region(record(attend, {"x": randn(5, 1), "m": randn(13, 4), "s": randn(5, 12)}))


def test_many_operands_stay_with_pytorch() -> None:
    """As in densely connected networks, where each layer's result is put behind all before it."""
    parts = {f"p{at}": randn(7 + at, 3) for at in range(5)}
    with pytest.raises(NotLowerable):
        lower_region(record(lambda **given: torch.cat(tuple(given.values())) * 2, parts))
