"""Inputs that measuring makes up: their types, layouts and ranges."""

from __future__ import annotations

import pytest
import torch
from mugraph.ir.calls import Triangle
from mugraph.ir.text import parse_program
from mugraph.tune.input_specs import input_specs
from mugraph.tune.messages import InputSpec
from mugraph.tune.timing import DTYPES, make_input, set_bytes

MIXTURE = """program mixture
  axes i=64, t=2, a=2, o=96
  tensor keep bool[t, i] from "keep"
  tensor x f16[t, i] from "x"
  tensor w f16[rows t*a, o, i] from "w" by picks i64 of 8 wraps from "picks"
  keep[i, t] = load(keep)
  x[i, t] = load(x)
  chosen[i, t] = kept(keep, x)
  w[a, i, o, t] = load(w)
  out[a, o, t] = dot(chosen, w, over=i)
  output out -> out f16[t, a, o] from "out"
"""
"""A product of rows at an index with what a mask keeps."""


@pytest.mark.parametrize("dtype", DTYPES)
def test_types_and_layouts(dtype: str) -> None:
    spec = InputSpec((3, 4), (8, 2), dtype, high=50)
    tensor = make_input(spec, torch.Generator().manual_seed(0))
    assert tensor.dtype == DTYPES[dtype]
    assert tensor.shape == (3, 4)
    assert tensor.stride() == (8, 2)
    numbers = torch.view_as_real(tensor) if tensor.is_complex() else tensor
    assert len(numbers.double().unique()) > 1
    assert set_bytes([spec]) == 23 * tensor.element_size()


@pytest.mark.parametrize("dtype", DTYPES)
def test_inputs_begin_where_the_programs_do(dtype: str) -> None:
    spec = InputSpec((3, 4), (8, 2), dtype, high=50, skew=3)
    tensor = make_input(spec, torch.Generator().manual_seed(0))
    assert (tensor.storage_offset(), tensor.shape, tensor.stride()) == (3, (3, 4), (8, 2))
    assert set_bytes([spec]) == 26 * tensor.element_size()


def test_a_mask_begins_where_the_programs_does() -> None:
    spec = InputSpec((2, 2), (2, 1), "f32", triangle=Triangle(0, 0.0, None), skew=1)
    tensor = make_input(spec, torch.Generator())
    assert tensor.storage_offset() == 1
    assert tensor.tolist() == [[0.0, float("-inf")], [0.0, 0.0]]


@pytest.mark.parametrize(
    ("dtype", "high", "largest"), [("i64", 7, 6), ("i32", 2, 1), ("u8", 5000, 254), ("i8", 200, 126)]
)
def test_integers_stay_below_their_limit(dtype: str, high: int, largest: int) -> None:
    tensor = make_input(InputSpec((4000,), (1,), dtype, high=high), torch.Generator().manual_seed(0))
    assert int(tensor.min()) == 0
    assert int(tensor.max()) == largest


def test_the_inputs_of_a_program_can_be_drawn() -> None:
    program = parse_program(MIXTURE)
    specs = input_specs(program, ["keep", "x", "w", "picks"])
    assert [(spec.dtype, spec.high) for spec in specs] == [("bool", 2), ("f16", 2), ("f16", 2), ("i64", 8)]
    keep, _, _, picks = (make_input(spec, torch.Generator().manual_seed(0)) for spec in specs)
    assert bool(keep.any())
    assert not bool(keep.all())
    assert int(picks.max()) < 8
