"""Kernels of rows that an index says: right ones are, and each fault in how a row is found is seen in the text."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass, replace
from functools import cache

import pytest
import torch
import torch.nn.functional as F
from mugraph.codegen.lower import lower_kernels
from mugraph.ir.block import Schedule
from mugraph.ir.kernel import KernelSource
from mugraph.ir.program import TensorProgram
from mugraph.search.direct import as_block
from mugraph.verification.float_test import FloatTester

from tests.engine.codegen.changed_text import passes
from tests.engine.units.regions import cut, meta, units

Function = Callable[..., torch.Tensor]
EXPERTS, INNER, OUTER = 8, 32, 48


def experts(x: torch.Tensor, w: torch.Tensor, picks: torch.Tensor) -> torch.Tensor:
    return torch.einsum("ti,taoi->tao", x, w[picks])


def requests(x: torch.Tensor, w: torch.Tensor, picks: torch.Tensor) -> torch.Tensor:
    return torch.bmm(w.index_select(0, picks), x[:, :, None]).squeeze(-1)


def words(table: torch.Tensor, w: torch.Tensor, picks: torch.Tensor) -> torch.Tensor:
    return F.embedding(picks, table) @ w


def of_two(x: torch.Tensor, w: torch.Tensor, v: torch.Tensor, one: torch.Tensor, other: torch.Tensor) -> torch.Tensor:
    return torch.einsum("ti,toi->to", x, w[one]) * torch.einsum("ti,toi->to", x, v[other])


@dataclass(frozen=True)
class Case:
    """tiles: of the grid's axes; others have 1"""

    function: Function
    inputs: dict[str, torch.Tensor]
    tiles: dict[str, int]


def index(*shape: int, dtype: torch.dtype = torch.int64) -> torch.Tensor:
    return meta(*shape, dtype=dtype)


CASES = {
    "experts": Case(experts, {"x": meta(2, INNER), "w": meta(EXPERTS, OUTER, INNER), "picks": index(2, 2)}, {"o": 16}),
    "one expert": Case(
        experts, {"x": meta(1, INNER), "w": meta(EXPERTS, OUTER, INNER), "picks": index(1, 1)}, {"o": 16}
    ),
    "many tokens": Case(
        experts, {"x": meta(7, INNER), "w": meta(EXPERTS, OUTER, INNER), "picks": index(7, 3)}, {"o": 32}
    ),
    "requests": Case(
        requests,
        {"x": meta(5, INNER), "w": meta(EXPERTS, OUTER, INNER), "picks": index(5, dtype=torch.int32)},
        {"n": 16},
    ),
    "of two": Case(
        of_two,
        {
            "x": meta(4, INNER),
            "w": meta(EXPERTS, OUTER, INNER),
            "v": meta(EXPERTS, OUTER, INNER),
            "one": index(4),
            "other": index(4),
        },
        {"o": 16},
    ),
    "words": Case(words, {"table": meta(300, INNER), "w": meta(INNER, OUTER), "picks": index(20)}, {"m": 16, "n": 16}),
}


@cache
def lowered(name: str) -> tuple[TensorProgram, KernelSource]:
    case = CASES[name]
    (unit,) = units(cut(case.function, **case.inputs))
    program = unit.program
    block = as_block(program)
    grid = tuple((axis, case.tiles.get(axis, 1)) for axis in reversed(block.outputs[0].axes))
    return program, lower_kernels([(block, Schedule(grid))], outputs=["out"], program=program)


@pytest.fixture(scope="module")
def tester() -> Iterator[FloatTester]:
    with FloatTester("interpreter", 120.0) as found:
        yield found


@pytest.mark.parametrize("name", CASES)
def test_it_is_right(name: str, tester: FloatTester) -> None:
    program, source = lowered(name)
    assert passes((program, source))
    found = tester.test_kernel(source, program, seed=3)
    assert found.passed, found.reason


def test_a_table_is_not_copied() -> None:
    program, source = lowered("experts")
    assert [tensor.memory_shape(program.sizes) for tensor in source.inputs] == [(4,), (2, 32), (8, 48, 32)]
    assert program.tensor("w").shape(program.sizes) == (4, 48, 32)


FAULTS = {
    "the row of another token": ("experts", "picks_ptr + pid_t * A + pid_a", "picks_ptr + pid_a"),
    "the row of another expert": ("experts", "picks_ptr + pid_t * A + pid_a", "picks_ptr + pid_t * A"),
    "rows exchanged": ("experts", "picks_ptr + pid_t * A + pid_a", "picks_ptr + pid_t * A + 1 - pid_a"),
    "none below the first": ("experts", "tl.maximum(picks_from_end, 0)", "picks_from_end"),
    "none above the last": ("experts", "tl.minimum(tl.maximum(picks_from_end, 0), 7)", "tl.maximum(picks_from_end, 0)"),
    "the last row is another one": ("experts", ", 7)", ", 6)"),
    "none from the end": ("experts", "tl.where(picks < 0, picks + 8, picks)", "picks"),
    "from another end": ("experts", "picks + 8, picks)", "picks + 7, picks)"),
    "rows of another length": ("experts", "picks_row * 1536", "picks_row * 1504"),
    "the index itself": ("experts", "w_ptr + picks_row * 1536", "w_ptr + (pid_t * A + pid_a) * 1536"),
    "the first row": ("one expert", "w_ptr + picks_row * 1536", "w_ptr"),
    "of one, none below the first": ("one expert", "tl.maximum(picks_from_end, 0)", "picks_from_end"),
    "of one, none above the last": ("one expert", "tl.minimum(tl.maximum(picks_from_end, 0), 7)",
                                    "tl.maximum(picks_from_end, 0)"),
    "of one, none from the end": ("one expert", "tl.where(picks < 0, picks + 8, picks)", "picks"),
    "from the end, of a call that has none": ("requests", "tl.maximum(picks, 0)",
                                              "tl.maximum(tl.where(picks < 0, picks + 8, picks), 0)"),
    "the next request's": ("requests", "picks_ptr + pid_m", "picks_ptr + (pid_m + 1) % 5"),
    "beyond the index": ("requests", "picks_ptr + pid_m", "picks_ptr + pid_m + 1"),
    "the other index": ("of two", "tl.load(other_ptr", "tl.load(one_ptr"),
    "indices exchanged": ("of two", "        one, other, x", "        other, one, x"),
    "a tile's first row for all": ("words", "picks_row[:, None]", "tl.min(picks_row, 0)"),
    "rows above the last of words": ("words", "tl.minimum(tl.maximum(picks, 0), 299)", "tl.maximum(picks, 0)"),
    "a tile beyond the index": ("words", "tl.load(picks_ptr + offs_m, mask=mask_m, other=0.0)",
                                "tl.load(picks_ptr + offs_m)"),
}  # fmt: skip


@pytest.mark.parametrize("fault", FAULTS)
def test_a_fault_is_seen(fault: str) -> None:
    name, old, new = FAULTS[fault]
    assert not passes(lowered(name), old, new)


def test_an_equal_text_is_taken() -> None:
    """The order of what is added, and how a number below zero is told, do not matter."""
    for old, new in (
        ("tl.where(picks < 0, picks + 8, picks)", "tl.where(picks >= 0, picks, 8 + picks)"),
        ("tl.minimum(tl.maximum(picks_from_end, 0), 7)", "tl.maximum(tl.minimum(picks_from_end, 7), 0)"),
        ("picks_ptr + pid_t * A + pid_a", "picks_ptr + pid_a + A * pid_t"),
    ):
        assert passes(lowered("experts"), old, new), new


def wrongs(source: KernelSource) -> dict[str, str]:
    return {
        "another row": source.jit.replace("picks_row *", "(picks_row ^ 1) *"),
        "the first row": source.jit.replace("picks_row *", "0 *"),
    }


@pytest.mark.parametrize("wrong", ["another row", "the first row"])
def test_numbers_of_another_row_are_seen_in_floating_point(wrong: str, tester: FloatTester) -> None:
    """What no element of an index says is NaN in a table there, and rows differ."""
    program, source = lowered("experts")
    text = wrongs(source)[wrong]
    assert text != source.jit
    assert not tester.test_kernel(replace(source, jit=text), program, seed=3).passed
