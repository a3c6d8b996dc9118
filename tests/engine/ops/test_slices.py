"""Parts of tensors are views of what is loaded; concatenations are taken apart by the sums they end in."""

from __future__ import annotations

import random
from collections.abc import Callable

import pytest
import torch
import torch.nn.functional as F
from mugraph.ir.ops import Kind
from mugraph.ops.algebra.axes import Atoms
from mugraph.ops.algebra.refusals import Duplicated, NotLowerable

from tests.engine.ops.harness import check, lower_region, randn, record

Q, K, V = randn(2, 5, 8), randn(2, 7, 8), randn(2, 7, 3)
COS, SIN = randn(1, 8, seed=1), randn(1, 8, seed=2)


def halves(x: torch.Tensor) -> torch.Tensor:
    half = x.shape[-1] // 2
    return torch.cat((-x[..., half:], x[..., :half]), dim=-1)


def neighbours(x: torch.Tensor) -> torch.Tensor:
    return torch.stack((-x[..., 1::2], x[..., ::2]), dim=-1).flatten(-2)


def pairs(x: torch.Tensor, cos: torch.Tensor, sin: torch.Tensor) -> torch.Tensor:
    a, b = x.reshape(*x.shape[:-1], -1, 2).unbind(-1)
    return torch.stack((a * cos - b * sin, a * sin + b * cos), dim=-1).flatten(-2)


@pytest.mark.parametrize("turn", [halves, neighbours])
def test_rotated_attention(turn: Callable[[torch.Tensor], torch.Tensor]) -> None:
    def attend(q: torch.Tensor, k: torch.Tensor, v: torch.Tensor, c: torch.Tensor, s: torch.Tensor) -> torch.Tensor:
        scores = (q * c + turn(q) * s) @ (k * c + turn(k) * s).transpose(-1, -2)
        return torch.softmax(scores * 0.3, -1) @ v

    program = check(attend, {"q": Q, "k": K, "v": V, "c": COS, "s": SIN}).program
    # A product for each half, of a sum of products of halves: every half is loaded once for each of its two roles.
    assert [op.kind for op in program.compute_ops].count(Kind.DOT) == 3
    assert len(program.tensors) == 9
    assert sorted(program.sizes.values()) == [2, 3, 4, 5, 7]


def test_attention_over_keys_kept_before_and_new_ones() -> None:
    """The scores are a concatenation, whose exponentials are asked for piece by piece."""

    def attend(
        q: torch.Tensor, kept: torch.Tensor, new: torch.Tensor, past: torch.Tensor, v: torch.Tensor
    ) -> torch.Tensor:
        scores = q @ torch.cat([kept, new], dim=1).transpose(-1, -2)
        return torch.softmax(scores, -1) @ torch.cat([past, v], dim=1)

    inputs = {"q": Q, "kept": randn(2, 6, 8), "new": randn(2, 3, 8, seed=1)}
    check(attend, {**inputs, "past": randn(2, 6, 4, seed=2), "v": randn(2, 3, 4, seed=3)})


def test_a_number_over_a_concatenation() -> None:
    def over(x: torch.Tensor, y: torch.Tensor, w: torch.Tensor) -> torch.Tensor:
        return (1.0 / (1.0 + torch.cat([x, y], dim=-1).square())) @ w

    check(over, {"x": randn(5, 6), "y": randn(5, 6, seed=1), "w": randn(12, 4)})


def test_pairs_that_are_taken_apart_first() -> None:
    check(lambda q, k, c, s: pairs(q, c, s) @ pairs(k, c, s).mT, {"q": Q, "k": K, "c": COS[:, 4:], "s": SIN[:, 4:]})


def test_a_part_that_is_rotated_beside_one_that_is_not() -> None:
    def some(x: torch.Tensor, c: torch.Tensor, s: torch.Tensor) -> torch.Tensor:
        turned, plain = x.split([4, 2], dim=-1)
        return torch.cat((turned * c + halves(turned) * s, plain), dim=-1)

    inputs = {"q": randn(2, 5, 6), "k": randn(2, 7, 6), "c": randn(1, 4), "s": randn(1, 4, seed=1)}
    check(lambda q, k, c, s: some(q, c, s) @ some(k, c, s).mT, inputs)


def test_a_projection_that_is_rotated_is_computed_once() -> None:
    def score(x: torch.Tensor, w: torch.Tensor, k: torch.Tensor, c: torch.Tensor, s: torch.Tensor) -> torch.Tensor:
        q = x @ w
        return (q * c + halves(q) * s) @ k.T

    program = check(score, {"x": randn(5, 6), "w": randn(6, 8), "k": randn(4, 8), "c": COS, "s": SIN}).program
    assert [op.kind for op in program.ops].count(Kind.DOT) == 4
    assert {t.source for t in program.tensors if t.source.startswith("w")} == {"w[:, :4]", "w[:, 4:]"}


def test_one_weight_for_two_projections() -> None:
    def swiglu(x: torch.Tensor, w: torch.Tensor, b: torch.Tensor) -> torch.Tensor:
        gate, up = torch.addmm(b, x, w).chunk(2, dim=-1)
        return F.silu(gate) * up

    program = check(swiglu, {"x": randn(4, 6), "w": randn(6, 10), "b": randn(10)}).program
    assert [tensor.source for tensor in program.tensors] == ["x", "w[:, :5]", "b[:5]", "w[:, 5:]", "b[5:]"]


def test_one_weight_for_queries_keys_and_values() -> None:
    def attend(x: torch.Tensor, w: torch.Tensor) -> torch.Tensor:
        q, k, v = (x @ w).reshape(2, 5, 3, 2, 4).permute(2, 0, 3, 1, 4)
        return torch.softmax(q @ k.mT, -1) @ v

    def grouped(x: torch.Tensor, w: torch.Tensor) -> torch.Tensor:
        q, k, v = (x @ w).split((16, 4, 4), dim=2)
        return q.view(2, 5, 4, 4).transpose(1, 2) @ k[:, None].mT @ v[:, None]

    inputs = {"x": randn(2, 5, 8), "w": randn(8, 24)}
    for function in (attend, grouped):
        sources = [tensor.source for tensor in check(function, inputs).program.tensors]
        assert sum(source.startswith("w[:, ") for source in sources) == 3


def test_concatenated_operands() -> None:
    parted = check(lambda a, b, w: torch.cat((a, b), -1) @ w, {"a": randn(3, 4), "b": randn(3, 4), "w": randn(8, 5)})
    assert [op.kind for op in parted.program.compute_ops] == [Kind.DOT, Kind.DOT, Kind.ADD]
    check(lambda a, b, w: torch.cat((a, b), -1) @ w, {"a": randn(3, 4), "b": randn(3, 10), "w": randn(14, 5)})
    both = {"x": randn(3, 6), "a": randn(6, 4), "b": randn(6, 4)}
    whole = check(lambda x, a, b: torch.mul(*(x @ torch.cat((a, b), 1)).chunk(2, 1)), both)
    assert not whole.views  # each half of the concatenation is one of its tensors


def test_the_largest_of_a_concatenation() -> None:
    program = check(lambda a, b: torch.cat((a * 2, b), -1).amax(-1), {"a": randn(3, 4), "b": randn(3, 4)}).program
    assert [op.kind for op in program.compute_ops].count(Kind.AMAX) == 2


REFUSED: dict[str, tuple[Callable[..., torch.Tensor], dict[str, torch.Tensor], str]] = {
    "an index that is computed": (lambda x, i: x[i + i] * 2, {"x": randn(6), "i": torch.tensor([1, 2])}, "computed"),
}  # fmt: skip


@pytest.mark.parametrize("name", REFUSED)
def test_refused(name: str) -> None:
    function, inputs, why = REFUSED[name]
    with pytest.raises(NotLowerable, match=why):
        lower_region(record(function, inputs))


def test_parts_that_overlap_are_not_computed_twice() -> None:
    def neighbours_of(x: torch.Tensor, w: torch.Tensor) -> torch.Tensor:
        y = x @ w
        return y[:, 1:] * y[:, :-1]

    with pytest.raises(Duplicated):
        lower_region(record(neighbours_of, {"x": randn(3, 4), "w": randn(4, 6)}))


@pytest.mark.parametrize("seed", range(12))
def test_sections_of_sections(seed: int) -> None:
    """Slices, views and transposes one after the other keep the elements that PyTorch keeps."""
    rng = random.Random(seed)
    equal = 0
    for _ in range(12):
        steps = [_step(rng) for _ in range(rng.randint(1, 4))]

        def program(x: torch.Tensor, steps: list[Callable[[torch.Tensor], torch.Tensor]] = steps) -> torch.Tensor:
            x = x * 2.0
            for step in steps:
                x = step(x)
            return x + 1.0

        try:
            check(program, {"x": randn(12, 24, seed=seed)})
        except NotLowerable:
            continue
        equal += 1
    assert equal >= 3


def _step(rng: random.Random) -> Callable[[torch.Tensor], torch.Tensor]:
    a, b, dim = rng.randrange(100), rng.randrange(100), rng.choice((0, -1))

    def cut(x: torch.Tensor) -> torch.Tensor:
        size = x.shape[dim]
        start = a % size
        return x.narrow(dim, start, 1 + b % (size - start))

    def half(x: torch.Tensor) -> torch.Tensor:
        return x.chunk(2, dim)[a % len(x.chunk(2, dim))]

    def every_second(x: torch.Tensor) -> torch.Tensor:
        return (x if dim else x.transpose(0, -1))[..., a % min(2, x.shape[-1] if dim else x.shape[0]) :: 2]

    def divided(x: torch.Tensor) -> torch.Tensor:
        size = x.shape[-1]
        return x.unflatten(-1, (2, size // 2)).transpose(0, 1) if size % 2 == 0 else x

    def flat(x: torch.Tensor) -> torch.Tensor:
        return x.reshape(x.shape[0], -1)

    return rng.choice((cut, half, every_second, divided, flat))


def test_equal_sections_are_one_atom() -> None:
    atoms = Atoms()
    (a,) = atoms.fresh(4)
    half = atoms.section(8, 4, 1, (a,))
    assert half == (*atoms.section(2, 1, 1, ()), a)
    assert atoms.regroup(half, (2, 4)) == (half[:1], (a,))
    assert atoms.section(12, 4, 1, half) == (*atoms.section(3, 2, 1, ()), a)  # the second half of the last two thirds
    assert atoms.free(half) == (a,)
    assert atoms.bounds(half) == (4, 7)
    odd = atoms.section(8, 1, 2, (a,))
    assert odd == (a, *atoms.section(2, 1, 1, ()))
    assert atoms.section(10, 3, 1, (a,)) != atoms.section(10, 4, 1, (a,))


def test_what_a_dimension_is_follows_unions_and_splits_and_goes_back_with_them() -> None:
    atoms = Atoms()
    (a,), (b,) = atoms.fresh(12), atoms.fresh(12)
    half = atoms.section(24, 12, 1, (b,))
    before = atoms.snapshot()
    assert (atoms.resolve((a, b)), atoms.free(half)) == ((a, b), (b,))
    atoms.union(a, b)
    assert (atoms.resolve((a, b)), atoms.free(half)) == ((a, a), (a,))
    outer, inner = atoms.split(a, 3)
    assert (atoms.resolve((b,)), atoms.free(half)) == ((outer, inner), (outer, inner))
    atoms.restore(before)
    assert (atoms.resolve((a, b)), atoms.free(half)) == ((a, b), (b,))
    parts = atoms.split(b, 4)
    assert (atoms.resolve((a, b)), atoms.free(half)) == ((a, *parts), parts)
    for _ in range(20):  # more states than are remembered
        (c,), (d,) = atoms.fresh(2), atoms.fresh(2)
        atoms.union(c, d)
        assert atoms.resolve((d, a, b)) == (c, a, *parts)
