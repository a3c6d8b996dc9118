"""Masks print, parse, go through JSON, are checked, and keep their corner at other sizes."""

from __future__ import annotations

from dataclasses import replace

import pytest
from hypothesis import given
from hypothesis import strategies as st
from mugraph.ir.block import BlockGraph, Loop
from mugraph.ir.json import block_from_json, block_to_json
from mugraph.ir.masks import at_sizes, empties, extents, is_causal, may_vary, resized
from mugraph.ir.ops import Kind, Op
from mugraph.ir.placement import placement
from mugraph.ir.spec import check_block
from mugraph.ir.tensors import Tensor
from mugraph.ir.text import format_block, parse_block

SIZES = {"s": 8, "t_split": 2, "t_part": 6}
X = Tensor("x", (("s",), ("t_split",), ("t_part",)), (12, 6, 1), "f16")
Y = Tensor("y", (("s",), ("t_split",)), (2, 1), "f16")
MASK = Op("mask", Kind.MASK, axes=("s", "t_part", "t_split"), value=-1.0, rows=("s",), columns=("t_split", "t_part"))


def block(mask: Op = MASK) -> BlockGraph:
    ops = (
        Op("x", Kind.LOAD, axes=("s", "t_part", "t_split"), tensor="x"),
        mask,
        Op("kept", Kind.MUL, ("x", "mask"), ("s", "t_part", "t_split")),
        Op("part", Kind.SUM, ("kept",), ("s", "t_split"), ("t_part",)),
        Op("total", Kind.ACCUM, ("part",), ("s", "t_split"), ("t_part",)),
        Op("store", Kind.STORE, ("total",), ("s", "t_split"), tensor="y"),
    )
    return BlockGraph("masked", SIZES, (X, Y), ops, (Loop("t_part"),))


def test_text_parses_back() -> None:
    text = format_block(block())
    assert "mask[s, t_part, t_split] = mask(rows=s, columns=t_split*t_part, diagonal=-1)" in text
    assert parse_block(text) == block()
    assert format_block(parse_block(text)) == text
    one_query = replace(MASK, axes=("t_part",), rows=(), columns=("t_part",))
    assert parse_block(format_block(block(one_query))) == block(one_query)


def test_json_goes_back() -> None:
    assert block_from_json(block_to_json(block())) == block()


def test_a_mask_varies_in_the_loop_over_its_columns() -> None:
    assert placement(block())["mask"] == ("t_part",)
    assert check_block(block()) == []


@pytest.mark.parametrize(
    ("mask", "reason"),
    [
        (replace(MASK, rows=(), columns=()), "needs `rows` and `columns`"),
        (replace(MASK, rows=("s", "t_part")), "an axis twice"),
        (replace(MASK, axes=("s",)), "has axes"),
        (replace(MASK, value=0.5), "no whole number"),
        (replace(MASK, inputs=("x",)), "takes 0 values"),
    ],
)
def test_malformed_masks_are_named(mask: Op, reason: str) -> None:
    assert any(reason in violation for violation in check_block(block(mask)))


def test_other_operators_have_no_rows() -> None:
    graph = block()
    broken = replace(graph, ops=(replace(graph.ops[0], rows=("s",)), *graph.ops[1:]))
    assert any("`rows`" in violation for violation in check_block(broken))


def mask(rows: int, columns: int, diagonal: int) -> tuple[Op, dict[str, int]]:
    return Op("m", Kind.MASK, axes=("c", "r"), value=float(diagonal), rows=("r",), columns=("c",)), {
        "r": rows,
        "c": columns,
    }


@given(st.integers(1, 40), st.integers(1, 40), st.integers(-2, 2))
def test_a_diagonal_near_the_first_corner_stays_there(rows: int, columns: int, diagonal: int) -> None:
    op, old = mask(64, 64, diagonal)
    assert resized(op, old, {"r": rows, "c": columns}).value == diagonal


@given(st.integers(1, 40), st.integers(1, 40), st.integers(0, 2))
def test_a_diagonal_near_the_last_corner_stays_there(rows: int, columns: int, distance: int) -> None:
    op, old = mask(16, 4096, 4080 + distance)
    assert resized(op, old, {"r": rows, "c": columns}).value == max(0, columns - rows) + distance


@given(st.integers(2, 5000), st.integers(2, 5000), st.data())
def test_masks_without_an_empty_row_keep_it_so_and_neighbours_stay_apart(
    rows: int, columns: int, data: st.DataObject
) -> None:
    diagonal = data.draw(st.integers(0, columns))
    op, old = mask(rows, columns, diagonal)
    small = {"r": data.draw(st.integers(2, 12)), "c": data.draw(st.integers(2, 12))}
    assert resized(op, old, small).value >= 0
    assert extents(op, small) == (small["r"], small["c"])
    if diagonal <= 1 and columns - rows > 4:
        assert resized(replace(op, value=op.value + 1), old, small).value == resized(op, old, small).value + 1


@given(st.integers(2, 300), st.integers(2, 300))
def test_a_causal_mask_is_the_same_at_every_size(largest: int, size: int) -> None:
    mask = replace(MASK, value=0.0, rows=("s",), columns=("t",), axes=("s", "t"))
    old, new = {"s": largest, "t": largest}, {"s": size, "t": size}
    assert is_causal(mask, old, old)
    assert resized(mask, old, new) == mask
    assert not is_causal(mask, {**old, "t": largest + 1}, old)
    assert not is_causal(mask, old, ["s"])
    assert not is_causal(replace(mask, value=1.0), old, old)


@given(st.integers(1, 300), st.integers(1, 300), st.integers(-9, 9))
def test_where_sizes_vary_a_mask_keeps_its_distance_from_its_corner(rows: int, columns: int, distance: int) -> None:
    """Also at sizes at which it is nothing but ones or zeros."""
    op, old = mask(64, 200, distance)
    new = {"r": rows, "c": columns}
    assert at_sizes(replace(op, fn="first"), old, new).value == distance
    assert at_sizes(replace(op, fn="last", value=136.0 + distance), old, new).value == columns - rows + distance
    assert at_sizes(op, old, new) == op
    assert may_vary(replace(op, fn="last"), old, [])
    assert not may_vary(op, old, [["r"], ["c"]])


def test_a_mask_may_hide_all_of_a_row_at_other_sizes() -> None:
    op, old = mask(8, 20, 12)
    ops = (replace(op, fn="last"), Op("summed", Kind.SUM, ("m",), ("r",), ("c",)))
    assert not empties(ops, old, {"r": 8, "c": 8}, {"r", "c"})
    assert empties(ops, old, {"r": 8, "c": 7}, {"r", "c"})
    assert not empties(ops, old, {"r": 8, "c": 7}, set())
    assert not empties(ops[:1], old, {"r": 8, "c": 7}, {"r", "c"}), "nothing is summed along it"


@pytest.mark.parametrize("corner", ["first", "last"])
def test_corners_print_and_parse(corner: str) -> None:
    graph = block(replace(MASK, fn=corner))
    assert f"mask.{corner}(" in format_block(graph)
    assert parse_block(format_block(graph)) == graph
    assert block_from_json(block_to_json(graph)) == graph
    assert any("not from middle" in violation for violation in check_block(block(replace(MASK, fn="middle"))))
