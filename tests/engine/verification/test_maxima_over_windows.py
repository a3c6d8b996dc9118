"""Maxima over windows that reach beyond their tensor: what lies outside is left out, not zero."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from functools import cache

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from mugraph.ir.block import BlockGraph
from mugraph.ir.json import block_from_json, block_to_json
from mugraph.ir.program import TensorProgram
from mugraph.ir.spec import check_block
from mugraph.ir.text import format_block, parse_block, parse_program
from mugraph.ir.windows import Window
from mugraph.search.run import topologies
from mugraph.verification.arithmetic import FloatArithmetic
from mugraph.verification.evaluate import evaluate_program
from mugraph.verification.verifier import verify_topology

from tests.engine.verification.slices import slices_of, values_of

PROGRAM = """\
program peaks
  axes n=3, p=6, q=5, r=3, s=2
  tensor x f32[n, window p over r stride 2 pad 1 edge, window q over s stride 2 dilation 3 pad 1 rest -1 edge]
  x[n, p, q, r, s] = load(x)
  top[n, p, q] = amax(x, over=r*s)
  y[n, p, q] = mul(top, top)
  output y -> out f32[n, p, q]
"""


@cache
def graphs() -> tuple[TensorProgram, BlockGraph]:
    program = parse_program(PROGRAM)
    return program, next(found.block for found in topologies(program))


def test_the_search_finds_it_and_forms_keep_it() -> None:
    program, block = graphs()
    assert all(window.edge for window in block.tensor("x").windows)
    assert check_block(block) == []
    assert parse_block(format_block(block)) == block
    assert block_from_json(block_to_json(block)) == block
    verdict = verify_topology(program, block, seed=1)
    assert verdict.passed, verdict.reason


WRONG: dict[str, Callable[[Window], Window]] = {
    "zeros outside": lambda window: replace(window, edge=False),
    "one place further": lambda window: replace(window, pad=window.pad - 1, rest=window.rest - 1),
    "one place back": lambda window: replace(window, pad=window.pad + 1, rest=window.rest + 1),
}


@pytest.mark.parametrize("name", WRONG)
@pytest.mark.parametrize("at", [0, 1])
def test_another_window_is_rejected(name: str, at: int) -> None:
    program, block = graphs()
    x = block.tensor("x")
    windows = tuple(WRONG[name](window) if i == at else window for i, window in enumerate(x.windows))
    tensors = tuple(replace(t, windows=windows) if t is x else t for t in block.tensors)
    verdict = verify_topology(program, replace(block, tensors=tensors), seed=1)
    assert not verdict.passed


def test_zeros_are_no_elements_of_a_maximum() -> None:
    """All elements are negative, and so is every maximum: each is that of the elements that are there."""
    program, _ = graphs()
    x = -1 - np.random.default_rng(0).random((1, *program.tensor("x").shape(program.sizes)))
    found = evaluate_program(program, {"x": x}, FloatArithmetic())["out"]
    height, width = x.shape[2:]
    for p in range(6):
        for q in range(5):
            rows = [place for place in range(2 * p - 1, 2 * p + 2) if 0 <= place < height]
            columns = [place for place in (2 * q - 1, 2 * q + 2) if 0 <= place < width]
            top = x[:, :, rows][..., columns].max(axis=(2, 3))
            np.testing.assert_array_equal(found[:, :, p, q], top**2)


@settings(max_examples=40, deadline=None)
@given(st.data())
def test_slices_read_what_the_whole_reads(data: st.DataObject) -> None:
    program, _ = graphs()
    slices = slices_of(program, data)
    assert {"n", "p", "q"} <= slices.keys()
    values_of(program, slices)


@given(
    st.integers(1, 4), st.integers(1, 4), st.integers(0, 6), st.integers(1, 5), st.integers(1, 5), st.integers(1, 12)
)
def test_what_is_read_again_is_in_the_same_window(
    stride: int, dilation: int, pad: int, positions: int, taps: int, extent: int
) -> None:
    window = Window(0, 1, stride, dilation, pad, edge=True)
    axes, sizes = ("p", "r"), {"p": positions, "r": taps}
    window = replace(window, rest=extent - window.extent(axes, sizes))
    read = window.places(axes, sizes)
    plain = replace(window, edge=False).places(axes, sizes)
    for position in range(positions):
        own = slice(position * taps, (position + 1) * taps)
        there = set(plain[own]) - {-1}
        if there and extent >= dilation:
            assert set(read[own]) == there
