"""Parts of a stack that differ in a number alone are one value with one more axis; others are not, and stay right."""

from __future__ import annotations

from collections.abc import Callable

import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st
from mugraph.ir.program import TensorProgram
from mugraph.ops.algebra import concat
from mugraph.ops.algebra.refusals import Duplicated, NotLowerable

from tests.engine.ops.harness import check, evaluate, lower_region, parts, randn, record

Step = Callable[[torch.Tensor, torch.Tensor, torch.Tensor], torch.Tensor]
"""Of the value so far, a part's own matrix, and a matrix that all parts read."""
STEPS: tuple[Step, ...] = (
    lambda h, own, shared: h @ own * 0.3,
    lambda h, own, shared: h @ shared * 0.3,
    lambda h, own, shared: torch.softmax(h, -1),
    lambda h, own, shared: torch.relu(h) - 0.5 * own,
    lambda h, own, shared: h * torch.rsqrt(h.pow(2).mean(-1, keepdim=True) + 0.1),
    lambda h, own, shared: h.mT + shared,
    lambda h, own, shared: torch.cat((-h[:, 3:], h[:, :3]), -1) * own,
    lambda h, own, shared: h / (shared * shared).sum(0) * 3.0,
    lambda h, own, shared: h.masked_fill(torch.ones(6, 6).triu(1).bool(), 0.0) @ own,
    lambda h, own, shared: h.cumsum(1) * 0.2,
)
Pick = Callable[[torch.Tensor, int], torch.Tensor]
"""Part `i` of [n, 6, 6], as people write it."""
PICKS: tuple[Pick, ...] = (
    lambda x, i: x[i],
    lambda x, i: x.transpose(0, 1)[:, i],
    lambda x, i: x.select(0, i),
    lambda x, i: x.unbind()[i],
    lambda x, i: x.reshape(-1, 6)[6 * i : 6 * i + 6],
    lambda x, i: x.permute(1, 2, 0)[..., i],
    lambda x, i: x.transpose(0, 1).reshape(6, -1).chunk(len(x), 1)[i],
    lambda x, i: x.narrow(0, i, 1).squeeze(0),
    lambda x, i: x.permute(1, 2, 0).reshape(6, -1)[:, i :: len(x)],
)
Join = Callable[[list[torch.Tensor]], torch.Tensor]
JOINS: tuple[Join, ...] = (
    torch.stack,
    lambda ys: torch.stack(ys, dim=1),
    lambda ys: torch.stack(ys, -1),
    torch.cat,
    lambda ys: torch.cat(ys, dim=-1),
    lambda ys: torch.stack(ys).sum(0),
    lambda ys: torch.cat([y.unsqueeze(0) for y in ys]) * 2.0,
)
Function = Callable[[torch.Tensor, torch.Tensor, torch.Tensor], torch.Tensor]


def function(steps: list[int], picks: tuple[int, int], join: int) -> Function:
    def joined(x: torch.Tensor, w: torch.Tensor, s: torch.Tensor) -> torch.Tensor:
        made: list[torch.Tensor] = []
        for i in range(len(x)):
            h, own = PICKS[picks[0]](x, i), PICKS[picks[1]](w, i)
            for step in steps:
                h = STEPS[step](h, own, s)
            made.append(h)
        return JOINS[join](made)

    return joined


def inputs(count: int) -> dict[str, torch.Tensor]:
    return {"x": randn(count, 6, 6), "w": randn(count, 6, 6, seed=3), "s": randn(6, 6, seed=5)}


def shape_of(program: TensorProgram) -> list[str]:
    """Its operators, whatever they are called."""
    return sorted(str(op.kind) for op in program.ops)


@settings(max_examples=60, deadline=None)
@given(
    st.lists(st.integers(0, len(STEPS) - 1), min_size=1, max_size=4),
    st.tuples(st.integers(0, len(PICKS) - 1), st.integers(0, len(PICKS) - 1)),
    st.integers(0, len(JOINS) - 1),
    st.integers(2, 13),
)
def test_any_parts(steps: list[int], picks: tuple[int, int], join: int, count: int) -> None:
    """Of as many operators as two of them would have, and the same numbers."""
    fn = function(steps, picks, join)
    several = 6 in steps  # what is joined inside of the parts is in pieces, which an operator may not go through
    try:
        program = check(fn, inputs(count)).program
    except NotLowerable:
        assert several
        return
    assert several or len(program.compute_ops) == len(check(fn, inputs(3)).program.compute_ops)


@settings(max_examples=25, deadline=None)
@given(st.lists(st.sampled_from([0, 1, 2, 3, 4, 5, 7]), min_size=1, max_size=3), st.integers(0, 4), st.integers(2, 5))
def test_it_is_what_the_pieces_are(steps: list[int], join: int, count: int) -> None:
    """The program of the pieces, each computed by itself, gives the same numbers."""
    given_to = inputs(count)
    region = record(function(steps, (0, 0), join), given_to)
    by_value = {live.value: given_to[live.expression] for live in region.live_ins}
    rolled = lower_region(region)
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(concat, "rolled", lambda b, on, nodes: None)
        pieces = lower_region(region)
    assert len(pieces.program.compute_ops) > len(rolled.program.compute_ops)
    one, other = (evaluate(found.program, parts(found, by_value)) for found in (rolled, pieces))
    torch.testing.assert_close(*(next(iter(found.values())).flatten() for found in (one, other)))


@pytest.mark.parametrize("count", [3, 7])
@pytest.mark.parametrize(
    "part",
    [
        lambda x, i, n: torch.relu(x[(n - 1) - i]),  # the other way round
        lambda x, i, n: torch.relu(x[0 if i == 1 else i]),  # one out of order
        lambda x, i, n: torch.relu(x[i]) * (2.0 if i == n - 1 else 3.0),  # another constant
        lambda x, i, n: torch.relu(x[i]) if i else torch.sigmoid(x[i]),  # another operator
        lambda x, i, n: torch.softmax(x[i], -1 if i else 0),  # along another axis
        lambda x, i, n: x[i] @ (x[i] if i else x[i].mT),  # other axes of one tensor
        lambda x, i, n: x[i] - (x[i] if i == 1 else x[0]),  # another tensor
        lambda x, i, n: torch.relu(x[i * i % n]),  # at no even distance
    ],
)
def test_near_misses(part: Callable[[torch.Tensor, int, int], torch.Tensor], count: int) -> None:
    """They have operators of their own, and are right."""
    x = randn(count, 4, 4)

    def joined(x: torch.Tensor) -> torch.Tensor:
        return torch.stack([part(x, i, count) for i in range(count)]) * 2.0

    found = check(joined, {"x": x})
    assert len(found.program.tensors) > 1  # parts of x


@pytest.mark.parametrize("count", [4, 12])
def test_parts_of_many_are_at_an_even_distance(count: int) -> None:
    """Every third, overlapping ones, ones with gaps between them: read in place, or in pieces."""
    x = randn(8 * count, 5)

    def parted(x: torch.Tensor, parts: int, length: int, step: int, first: int = 0) -> torch.Tensor:
        begins = [first + step * i for i in range(parts)]
        return torch.stack([torch.softmax(x[begin : begin + length], -1) for begin in begins])

    for length, step, first in ((1, 3, 1), (8, 8, 0), (4, 8, 3), (2, 4, 0)):
        found = check(lambda x, at=(count, length, step, first): parted(x, *at), {"x": x})
        assert len(found.program.tensors) == 1, (length, step, first)
    assert len(check(lambda x: parted(x, 4, 4, 2), {"x": x}).program.tensors) == 4


def test_a_part_that_all_read() -> None:
    """The first row is the first part's own, and is subtracted from all."""
    program = check(lambda x: torch.stack([x[i] - 2 * x[0] for i in range(11)]) * 2, {"x": randn(11, 9)}).program
    assert sorted(tensor.source for tensor in program.tensors) == ["x", "x[0]"]


def test_what_is_computed_before_the_parts() -> None:
    """A softmax that parts are taken of, and that is read again beside them, is computed along two axes, as it is where
    the product is written in one: neither has a program."""

    def fn(x: torch.Tensor, w: torch.Tensor) -> torch.Tensor:
        h = torch.softmax(x, -1)
        return torch.stack([h[:, i] @ w[i] for i in range(9)], 1) + h

    def whole(x: torch.Tensor, w: torch.Tensor) -> torch.Tensor:
        h = torch.softmax(x, -1)
        return torch.einsum("bik,ikn->bin", h, w) + h

    for one in (fn, whole):
        with pytest.raises(Duplicated):
            lower_region(record(one, {"x": randn(4, 9, 6), "w": randn(9, 6, 6)}))


def test_a_value_of_each_part_that_is_read_twice() -> None:
    def fn(x: torch.Tensor) -> torch.Tensor:
        made: list[torch.Tensor] = []
        for i in range(9):
            h = torch.softmax(x[:, i], -1)
            made.append(h / h.pow(2).sum(-1, keepdim=True))
        return torch.stack(made, 1)

    program = check(fn, {"x": randn(4, 9, 6)}).program
    assert shape_of(program) == ["div", "div", "exp", "load", "mul", "sum", "sum"]


def test_separate_inputs_are_left() -> None:
    tensors = {f"x{i}": randn(4, 5, seed=i) for i in range(9)}
    with pytest.raises(NotLowerable, match="more than 8 pieces"):
        lower_region(record(lambda **given: torch.stack([torch.relu(x) for x in given.values()]), tensors))


def test_many_parts_take_no_longer_each() -> None:
    """Each set of alike operators is compared once, however many ways lead to it."""

    def deep(x: torch.Tensor) -> torch.Tensor:
        h = x
        for _ in range(12):  # 2 ** 12 ways from the result to x
            h = torch.relu(h) + torch.sigmoid(h)
        return h

    program = check(lambda x: torch.stack([deep(x[i]) for i in range(48)]), {"x": randn(48, 7)}).program
    assert len(program.compute_ops) == 36
