"""Indices and tables that kernels of looked-up rows are tested with."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest
import torch
from mugraph.ir.lookups import Lookup
from mugraph.ir.ops import Kind, Op
from mugraph.ir.program import TensorProgram
from mugraph.ir.tensors import Tensor
from mugraph.ir.windows import Window
from mugraph.verification.index_numbers import draws_of, numbers_of
from mugraph.verification.looked_up import agree, gathered, tables

SIZES = {"t": 3, "d": 5}


def program(*lookups: Lookup, **sizes: int) -> TensorProgram:
    """The sum along rows of tensors of which rows are looked up."""
    named = dict(zip("xyz", lookups, strict=False))
    tensors = tuple(
        Tensor(name, (("t",), ("d",)), (5, 1), "f32", name, (Window(0, 0, lookup=one),)) for name, one in named.items()
    )
    loads = tuple(Op(name, Kind.LOAD, (), ("d", "t"), tensor=name) for name in named)
    total = Op("total", Kind.SUM, ("x",), ("t",), ("d",))
    return TensorProgram(
        "p", {**SIZES, **sizes}, tensors, (*loads, total), {"total": Tensor("out", (("t",),), (1,), "f32")}
    )


def test_numbers_below_zero_and_beyond_the_last_row_have_the_nearest_row() -> None:
    numbers = np.array([0, 3, -1, -4, 4, -5, 99])
    assert Lookup("i", "i64", 4).rows_at(numbers).tolist() == [0, 3, 0, 0, 3, 0, 3]
    assert Lookup("i", "i64", 4, wraps=True).rows_at(numbers).tolist() == [0, 3, 3, 0, 3, 0, 3]


@pytest.mark.parametrize(("count", "rows"), [(1, 8), (2, 8), (3, 8), (7, 8)])
@pytest.mark.parametrize("wraps", [False, True])
def test_each_kind_of_number_is_drawn(count: int, rows: int, wraps: bool) -> None:
    one = Lookup("i", "i64", rows, wraps)
    every = [draw["i"] for draw in draws_of(program(one, t=count), np.random.default_rng(1), beyond=True)]
    drawn = np.concatenate(every)
    assert (drawn >= rows).any()
    assert (drawn < -rows).any()
    assert ((drawn < 0) & (drawn >= -rows)).any()
    assert ((drawn >= 0) & (drawn < rows)).any()
    for numbers in (draw["i"] for draw in draws_of(program(one, t=count), np.random.default_rng(1), beyond=False)):
        assert ((numbers >= one.least) & (numbers < rows)).all()
        assert len(np.unique(one.rows_at(numbers))) == count


def test_two_indices_say_different_rows() -> None:
    found = numbers_of(program(Lookup("i", "i64", 50), Lookup("j", "i64", 50)))
    assert found["i"].tolist() != found["j"].tolist()


def test_one_index_is_of_rows_that_all_its_tables_have() -> None:
    found = numbers_of(program(Lookup("i", "i64", 50), Lookup("i", "i64", 3)))
    assert set(found) == {"i"}
    assert sorted(found["i"].tolist()) == [0, 1, 2]


@pytest.mark.parametrize("rows", [2, 9])
def test_a_table_has_the_rows_that_are_read_and_no_others(rows: int) -> None:
    what = program(Lookup("i", "i32", rows, wraps=True))
    inputs = {"x": torch.randn(3, 5)}
    agree(what, inputs)
    memory = tables(what, inputs)
    assert memory["i"].dtype == torch.int32
    assert memory["x"].shape == (rows, 5)
    assert torch.equal(memory["x"][memory["i"].long()], inputs["x"])
    assert int(memory["x"].isnan().any(1).sum()) == max(0, rows - 3)
    assert torch.equal(gathered(what, memory)["x"], inputs["x"])


def test_without_an_index_there_is_one_draw() -> None:
    plain = replace(program(Lookup("i", "i64", 4)), tensors=(Tensor("x", (("t",), ("d",)), (5, 1), "f32", "x"),))
    assert draws_of(plain, np.random.default_rng(1), beyond=True) == [{}]
    assert tables(plain, {"x": torch.ones(3, 5)}) == {}
