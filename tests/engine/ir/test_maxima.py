"""Maxima in a block graph: what is valid, how it reads, how it is drawn."""

from __future__ import annotations

from dataclasses import replace

import pytest
from mugraph.ir.block import BlockGraph, Loop, Schedule
from mugraph.ir.drawing import draw_svg, draw_tree
from mugraph.ir.json import block_from_json, block_to_json
from mugraph.ir.mugraph import GraphKernel, MuGraph
from mugraph.ir.ops import LARGEST, Kind, Op
from mugraph.ir.spec import check_block
from mugraph.ir.tensors import Tensor
from mugraph.ir.text import TextError, format_block, parse_block

X = Tensor("x", (("m",), ("h",)), (64, 1), "f16", "x")
OUT = Tensor("out", (("m",),), (1,), "f16", "out")
OPS = (
    Op("x", Kind.LOAD, axes=("h", "m"), tensor="x"),
    Op("least", Kind.CONST, value=0.5),
    Op("part", Kind.AMAX, ("x",), ("m",), ("h",)),
    Op("top", Kind.ACCUM, ("part",), ("m",), ("h",), fn=LARGEST),
    Op("limited", Kind.MAX, ("top", "least"), ("m",)),
    Op("store_out", Kind.STORE, ("limited",), ("m",), tensor="out"),
)
BLOCK = BlockGraph("largest", {"m": 16, "h": 64}, (X, OUT), OPS, (Loop("h"),))


def test_it_is_valid_and_goes_through_text_and_json() -> None:
    assert check_block(BLOCK) == []
    text = format_block(BLOCK)
    assert "part[m] = amax(x, over=h)" in text
    assert "top[m] = accum.max(part, over=h)" in text
    assert "limited[m] = max(top, least)" in text
    assert parse_block(text) == block_from_json(block_to_json(BLOCK)) == BLOCK


@pytest.mark.parametrize("kind", ["accum.min", "amax.max", "max.x"])
def test_other_names_are_no_operators(kind: str) -> None:
    with pytest.raises(TextError, match="is no operator"):
        parse_block(format_block(BLOCK).replace("accum.max", kind))


def test_a_maximum_needs_the_axis_it_is_taken_along() -> None:
    ops = tuple(replace(op, over=()) if op.kind is Kind.AMAX else op for op in OPS)
    assert any("needs `over`" in said for said in check_block(replace(BLOCK, ops=ops)))


def test_it_is_drawn() -> None:
    kernel = GraphKernel("largest", BLOCK, Schedule((("m", 16),), {"h": 32}))
    graph = MuGraph("largest", BLOCK.sizes, BLOCK.tensors, ("x",), ("out",), (kernel,))
    text = draw_tree(graph)
    assert "max over h of x" in text
    assert "keep the largest of part over h" in text
    assert "max(top, 0.5)" in text
    assert "max accum h" in draw_svg(graph)
