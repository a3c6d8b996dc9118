"""Tile-by-tile execution in float64 agrees with numpy and the program, for tiles that fit and tiles that do not."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from mugraph.ir.block import Schedule
from mugraph.ir.tensors import Tensor, contiguous_strides
from mugraph.ir.transforms.resizing import resize, resize_block, resize_tensor
from mugraph.verification.arithmetic import FloatArithmetic
from mugraph.verification.evaluate import evaluate_program
from mugraph.verification.execute import execute_block
from mugraph.verification.sizes import grid_axes

from tests.engine.verification.graphs import CASES, rms_norm_linear


@pytest.mark.parametrize("name", CASES)
@given(data=st.data())
@settings(max_examples=15, deadline=None)
def test_any_tiles_give_the_program(name: str, data: st.DataObject) -> None:
    case = CASES[name]()
    sizes = {axis: data.draw(st.integers(2, 9), axis) for axis in case.block.sizes}
    program, block = resize(case.program, sizes), resize_block(case.block, sizes)
    grid = tuple((axis, data.draw(st.integers(1, 5), axis)) for axis in grid_axes(block))
    # A tile that holds all of a looped axis makes SUM(ACCUM(x)) and ACCUM(SUM(x)) the same still.
    schedule = Schedule(grid, {axis: data.draw(st.integers(1, 10), axis) for axis in block.loop_axes})
    rng = np.random.default_rng(0)
    inputs = {t.name: rng.uniform(0.5, 1.5, (1, *t.shape(sizes))) for t in program.tensors}
    expected = evaluate_program(program, inputs, FloatArithmetic())
    found = execute_block(block, schedule, inputs, FloatArithmetic())
    for tensor, value in expected.items():
        np.testing.assert_allclose(found[tensor], value, rtol=1e-10)


def test_the_program_is_what_numpy_computes() -> None:
    program = resize(rms_norm_linear().program, {"b": 3, "h": 7, "n": 5})
    rng = np.random.default_rng(0)
    x, g, w = rng.normal(size=(3, 7)), rng.normal(size=7), rng.normal(size=(5, 7))
    found = evaluate_program(program, {"x": x[None], "g": g[None], "w": w[None]}, FloatArithmetic())["z"][0]
    expected = (x / np.sqrt((x * x).sum(1, keepdims=True) / 1024 + 1e-6) * g) @ w.T
    np.testing.assert_allclose(found, expected, rtol=1e-12)


def test_resized_tensors_keep_their_layout() -> None:
    old, new = {"a": 8, "b": 16}, {"a": 3, "b": 5}
    dims = (("a",), ("b",))
    assert resize_tensor(Tensor("t", dims, (16, 1), "f16"), old, new).strides == contiguous_strides(dims, new)
    assert resize_tensor(Tensor("t", dims, (1, 8), "f16"), old, new).strides == (1, 3)
    assert resize_tensor(Tensor("t", dims, (48, 1), "f16"), old, new).strides == (15, 1)
    assert resize_tensor(Tensor("t", dims, (0, 1), "f16"), old, new).strides == (0, 1)
    assert resize_tensor(Tensor("t", dims, (16, 2), "f16"), old, new).strides == (10, 2)
