"""Axes packed into one dimension of a product: what they are, how they are shown, and what keeps them apart."""

from __future__ import annotations

import pytest
from mugraph.ir.block import BlockGraph, Loop, Schedule
from mugraph.ir.drawing import draw_svg, draw_tree
from mugraph.ir.mugraph import MuGraph
from mugraph.ir.packing import packed
from mugraph.ir.spec import check_candidate, check_mugraph
from mugraph.ir.text import TextError, format_mugraph, parse_mugraph

from tests.engine.codegen.graphs import Graph, grouped_attention
from tests.engine.ir.graphs import single

WHOLE_GROUP = Schedule((("q", 4), ("kvh", 1), ("s", 1)), {"kv": 16})


def graph() -> MuGraph:
    """A group of 4 heads over each key-value head: 4 of 8 queries of every head are 16 rows."""
    return single(grouped_attention(2, 2, 4, 8, 16, 40), WHOLE_GROUP)


def test_heads_and_queries_of_a_group_are_rows() -> None:
    kernel = graph().kernels[0]
    assert isinstance(kernel.block, BlockGraph)
    assert check_mugraph(graph()) == []
    assert packed(kernel.block, WHOLE_GROUP) == (("q", "group"),)
    one_query = Schedule((("q", 1), ("kvh", 1), ("s", 1)), {"kv": 16})
    assert packed(kernel.block, one_query) == ()


def test_text_says_so_and_parses_back() -> None:
    text = format_mugraph(graph())
    assert parse_mugraph(text) == graph()
    lines = [line for line in text.splitlines() if "reshape" in line]
    assert [line.split("=")[1].split("(")[0].strip() for line in lines] == ["load", "store"]  # queries and the output
    assert all(line.endswith("reshape q*group") for line in lines)
    assert "repeat" not in text  # keys and values have no axis of the rows
    with pytest.raises(TextError, match=r"the maps of .* follow from its axes: .* reshape q\*group, not"):
        parse_mugraph(text.replace(" reshape q*group", "", 1))


def test_drawings_show_the_dimension() -> None:
    assert "[s=1, q*group=16, kvh=1, kv=16]" in draw_tree(graph())
    assert "reshape 4 × 4 × 16 → 16 × 16" in draw_svg(graph())


def test_what_lacks_an_axis_repeats() -> None:
    block = _project("bias", ("s",))
    assert check_candidate(block, Schedule(())) == []
    text = format_mugraph(single(block, Schedule(())))
    assert [line.rsplit(" ", 2)[-2:] for line in text.splitlines() if "load(bias" in line] == [["repeat", "g"]]
    assert "repeat 16 → 128" in draw_svg(single(block, Schedule(())))


def test_a_part_of_a_dimension_is_neither_reduced_nor_stored() -> None:
    g = _start("reduces")
    g.store(g.sum("total", "z", "s"), "y", "g n")
    assert "total reduces s of g*s, one dimension of a product" in check_candidate(g.build(), Schedule(()))
    assert check_candidate(g.build(), Schedule((("g", 1),))) == []
    g = _start("stores")
    g.store("z", "y", "g s n")
    g.store(g.mul("twice", "bias", "bias"), "other", "s")
    assert check_candidate(g.build(), Schedule(())) == ["store_other stores s of g*s, one dimension of a product"]


def test_two_sides_of_a_product_share_no_dimension() -> None:
    g = _start("shares")
    g.store(g.dot("y", g.mul("a", "bias", g.load("u", "k")), g.load("v", "g k"), "k"), "out", "g s")
    g.store("z", "y_out", "g s n")
    assert "two sides of a product have axes of g*s" in check_candidate(g.build(), Schedule(()))


def test_a_looped_axis_is_not_packed() -> None:
    g = Graph("heads", {"s": 32, "h": 32, "d": 16, "n": 64}, (Loop("h"),))
    z = g.dot("z", g.load("x", "s h d"), g.load("w", "h d n"), "d h")
    g.store(g.accum("acc", z, "h"), "y", "s n")
    assert check_candidate(g.build(), Schedule((), {"h": 16})) == [
        "axis h is looped, so h*d is no dimension of a product"
    ]


def _start(name: str) -> Graph:
    g = Graph(name, {"g": 8, "s": 16, "k": 64, "n": 64})
    g.dot("z", g.load("x", "g s k"), g.load("w", "k n"), "k")
    g.load("bias", "s")
    return g


def _project(name: str, axes: tuple[str, ...]) -> BlockGraph:
    """x[g, s, k] @ w[k, n] + bias"""
    g = Graph("project", {"g": 8, "s": 16, "k": 64, "n": 64})
    z = g.dot("z", g.load("x", "g s k"), g.load("w", "k n"), "k")
    g.store(g.add("moved", z, g.load(name, " ".join(axes))), "y", "g s n")
    return g.build()
