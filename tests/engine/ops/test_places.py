"""Places along axes: what torch.arange counts, masks made of comparisons of them, and biases computed from them."""

from __future__ import annotations

from collections.abc import Callable
from contextlib import suppress
from dataclasses import replace

import pytest
import torch
import torch.nn.functional as F
from mugraph.codegen.aot import compile_for
from mugraph.codegen.lower import lower
from mugraph.ir.block import Schedule
from mugraph.ir.json import program_from_json, program_to_json
from mugraph.ir.kernel import Rejected
from mugraph.ir.ops import Kind, Op
from mugraph.ir.spec import check_program
from mugraph.ir.text.parser import parse_program
from mugraph.ir.text.printer import format_program
from mugraph.ops.algebra.refusals import NotLowerable
from mugraph.search.direct import as_block
from mugraph.search.run import Search
from mugraph.search.schedules.tiles import Shape
from mugraph.verification.verifier import verify_topology

from tests.engine.ops.harness import check, lower_region, randn, record

T, W = 9, 3
Q, K, V = (randn(2, T, 4, seed=seed) for seed in range(3))
SLOPES = randn(2, seed=5)
INPUTS = {"q": Q, "k": K, "v": V}
NEVER = float("-inf")


def _attention(mask: Callable[[torch.Tensor], torch.Tensor]) -> list[Callable[..., torch.Tensor]]:
    """With a mask of what is seen, as people write it."""

    def filled(q: torch.Tensor, k: torch.Tensor, v: torch.Tensor) -> torch.Tensor:
        return (q @ k.mT).masked_fill(~mask(torch.arange(T)), NEVER).softmax(-1) @ v

    def chosen(q: torch.Tensor, k: torch.Tensor, v: torch.Tensor) -> torch.Tensor:
        return torch.where(mask(torch.arange(T)), q @ k.mT, NEVER).softmax(-1) @ v

    def added(q: torch.Tensor, k: torch.Tensor, v: torch.Tensor) -> torch.Tensor:
        bias = torch.zeros(T, T).masked_fill(mask(torch.arange(T)).logical_not(), NEVER)
        return (q @ k.mT + bias).softmax(-1) @ v

    def given(q: torch.Tensor, k: torch.Tensor, v: torch.Tensor) -> torch.Tensor:
        return F.scaled_dot_product_attention(q, k, v, attn_mask=mask(torch.arange(T)))

    return [filled, chosen, added, given]


MASKS: dict[str, tuple[Callable[[torch.Tensor], torch.Tensor], int]] = {
    "causal": (lambda i: i[:, None] >= i[None, :], 1),
    "causal, the other way": (lambda i: i[None, :] < i[:, None] + 1, 1),
    "window": (lambda i: (i[:, None] >= i[None, :]) & (i[:, None] - i[None, :] < W), 2),
    "window, of what is hidden": (lambda i: ~((i[None, :] > i[:, None]) | (i[None, :] <= i[:, None] - W)), 2),
    "window on both sides": (lambda i: (i[:, None] - i[None, :]).abs() < W, 2),
    "in float": (lambda i: i.float()[:, None] * 2.0 >= i.float()[None, :] * 2.0, 1),
    "the first keys": (lambda i: (i < 4)[None, :] & (i[:, None] >= 0), 1),
    "triangles": (lambda i: torch.ones(T, T).tril(1).bool() & torch.ones(T, T).triu(-W).bool(), 2),
}


@pytest.mark.parametrize("name", MASKS)
def test_comparisons_of_places_are_masks(name: str) -> None:
    mask, count = MASKS[name]
    for fn in _attention(mask):
        program = check(fn, INPUTS).program
        kinds = [op.kind for op in program.ops]
        assert kinds.count(Kind.MASK) == count
        assert not {Kind.POSITION, Kind.GREATER, Kind.GREATER_EQUAL, Kind.KEPT} & set(kinds)
        assert verify_topology(program, as_block(program)).passed


def _alibi(q: torch.Tensor, k: torch.Tensor, v: torch.Tensor, slopes: torch.Tensor) -> torch.Tensor:
    i = torch.arange(T)
    distance = i[:, None] - i[None, :]
    bias = (-distance.abs() * slopes[:, None, None]).masked_fill(distance < 0, NEVER)
    return F.scaled_dot_product_attention(q, k, v, attn_mask=bias)


def test_biases_by_distance() -> None:
    program = check(_alibi, {**INPUTS, "slopes": SLOPES}).program
    assert [op.kind for op in program.ops].count(Kind.POSITION) == 2
    assert verify_topology(program, as_block(program)).passed
    assert check_program(program) == []
    assert parse_program(format_program(program)) == program
    assert program_from_json(program_to_json(program)) == program


def _distances(q: torch.Tensor, k: torch.Tensor, v: torch.Tensor) -> torch.Tensor:
    """To keys on both sides, times slopes that are powers of two."""
    i = torch.arange(T)
    slopes = torch.pow(2.0, -4.0 * torch.arange(1, 3, dtype=torch.float32))
    return ((q @ k.mT) - (i[:, None] - i).abs() * slopes[:, None, None]).softmax(-1) @ v


def test_slopes_by_powers() -> None:
    program = check(_distances, INPUTS).program
    assert sum(op.kind.is_exponential for op in program.ops) == 1
    assert verify_topology(program, as_block(program)).passed


PARTS = {
    "an offset": lambda x: x * torch.arange(3, 9, dtype=torch.float32),
    "a step": lambda x: x + torch.arange(0, 3, 0.5),
    "a part": lambda x: x * torch.arange(20)[7:19:2],
    "halves": lambda x: x * torch.arange(12).view(2, 6)[1],
    "two axes": lambda x: x.unflatten(1, (2, 3)) * torch.arange(6).view(2, 3),
    "rows and columns": lambda x: x * (torch.arange(6) == torch.arange(5)[:, None]),
    "an end": lambda x: x * (torch.arange(6) < 4),
}


@pytest.mark.parametrize("name", PARTS)
def test_places_are_numbers(name: str) -> None:
    program = check(PARTS[name], {"x": randn(5, 6)}).program
    assert verify_topology(program, as_block(program)).passed


REFUSED = {
    "too many": lambda x: x + (torch.arange(6) * 10**7 > torch.arange(6)),
    "a remainder": lambda x: x * (torch.arange(6) % 3),
    "nothing else": lambda x: torch.arange(6, dtype=torch.float32) * 2.0,
}


@pytest.mark.parametrize("name", REFUSED)
def test_what_is_refused(name: str) -> None:
    with pytest.raises(NotLowerable):
        lower_region(record(REFUSED[name], {"x": randn(5, 6)}))


def test_what_a_type_rounds_is_not_compared_as_it_is() -> None:
    def fn(x: torch.Tensor) -> torch.Tensor:
        i = torch.arange(300).bfloat16()
        return x * (i[:, None] >= i)

    program = lower_region(record(fn, {"x": randn(300, 300)})).program
    assert Kind.MASK not in {op.kind for op in program.ops}


def test_all_of_a_row_is_not_hidden() -> None:
    def fn(q: torch.Tensor, k: torch.Tensor, v: torch.Tensor) -> torch.Tensor:
        i = torch.arange(T)
        return (q @ k.mT).masked_fill((i[:, None] <= i) | (i[:, None] - i > 4), NEVER).softmax(-1) @ v

    with pytest.raises(NotLowerable, match="hide all of a row"):
        lower_region(record(fn, INPUTS))


def _moved(kind: Kind, by: float, which: int = 0) -> Callable[[list[Op]], list[Op]]:
    def change(ops: list[Op]) -> list[Op]:
        chosen = [op for op in ops if op.kind is kind][which]
        return [replace(op, value=op.value + by) if op is chosen else op for op in ops]

    return change


MUTANTS = {
    "a mask off by one": ("window", _moved(Kind.MASK, 1.0)),
    "later by one": ("window", _moved(Kind.MASK, -1.0)),
    "a window one too short": ("window", _moved(Kind.MASK, -1.0, 1)),
    "a window one too long": ("window", _moved(Kind.MASK, 1.0, 1)),
    "causal, < for <=": ("causal", _moved(Kind.MASK, -1.0)),
    "distances one too long": ("distances", _moved(Kind.POSITION, 1.0)),
}


@pytest.mark.parametrize("name", MUTANTS)
def test_wrong_masks_are_rejected(name: str) -> None:
    which, change = MUTANTS[name]
    fn = _distances if which == "distances" else _attention(MASKS[which][0])[0]
    program = check(fn, INPUTS).program
    block = as_block(program)
    assert verify_topology(program, block).passed
    assert not verify_topology(program, replace(block, ops=tuple(change(list(block.ops))))).passed


def test_a_mask_left_out_is_rejected() -> None:
    program = check(_attention(MASKS["window"][0])[0], INPUTS).program
    block = as_block(program)
    (both,) = (op for op in block.ops if op.kind is Kind.MUL and set(op.inputs) <= {"mask", "mask_2"})
    ops = tuple(replace(op, inputs=(op.inputs[0],) * 2) if op is both else op for op in block.ops)
    assert not verify_topology(program, replace(block, ops=ops)).passed


def test_it_compiles() -> None:
    def fn(x: torch.Tensor) -> torch.Tensor:
        return x * (torch.arange(4, 54) * 0.5)

    block = as_block(check(fn, {"x": randn(8, 50)}).program)
    rows = block.outputs[0].axes[0]
    source = lower(block, Schedule(((rows, 4),), {}))
    assert "+ 4).to(tl.float32)" in source.jit
    assert ".target sm_90" in compile_for(source, 90).ptx


def test_places_beside_a_concatenation() -> None:
    """Each piece has its own places."""

    def fn(x: torch.Tensor, w: torch.Tensor) -> torch.Tensor:
        return (torch.cat([x[:, 3:], -x[:, :3]], 1) * torch.arange(6)) @ w

    check(fn, {"x": randn(5, 6), "w": randn(6, 4)})


def test_masks_of_other_axes_are_factors_of_one_another() -> None:
    """A window, and keys that are left out."""

    def fn(q: torch.Tensor, k: torch.Tensor, v: torch.Tensor) -> torch.Tensor:
        i = torch.arange(T)
        seen = (i[:, None] >= i[None, :] - 2) & (i < 7)[None, :]
        return (q @ k.mT).masked_fill(~seen, NEVER).softmax(-1) @ v

    program = check(fn, INPUTS).program
    texts: list[str] = []
    for block in (one.block for one in Search(program).run()):
        assert verify_topology(program, block).passed
        grid = tuple((axis, 1 if axis == "b" else 16) for axis in Shape(block).grid_axes)
        with suppress(Rejected):  # one mask may be a factor of the values: then the maximum does not know of it
            texts.append(lower(block, Schedule(grid, dict.fromkeys(block.loop_axes, 16))).jit)
    assert texts
    assert all("<= 6)" in text and "+ 2)" in text for text in texts)
