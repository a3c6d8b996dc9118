"""The order in which a value's dimensions lie in memory."""

from __future__ import annotations

import torch
from hypothesis import given
from hypothesis import strategies as st
from mugraph.ir.calls import TensorInfo
from mugraph.ir.memory_order import in_order, inverse, is_dense, memory_order


def info_of(tensor: torch.Tensor) -> TensorInfo:
    return TensorInfo(tuple(tensor.shape), tensor.stride(), "f32")


@st.composite
def permuted(draw: st.DrawFn) -> torch.Tensor:
    shape = draw(st.lists(st.integers(1, 4), max_size=5))
    return torch.empty(shape).permute(draw(st.permutations(range(len(shape)))))


@given(permuted())
def test_a_permuted_tensor_lies_row_by_row_in_its_order(tensor: torch.Tensor):
    info = info_of(tensor)
    order = memory_order(info)
    assert is_dense(info)
    assert tensor.permute(order).is_contiguous()
    assert tensor.permute(order).permute(inverse(order)).shape == tensor.shape
    assert in_order(inverse(order), in_order(order, info.shape)) == info.shape


@given(permuted())
def test_what_lies_row_by_row_keeps_its_order(tensor: torch.Tensor):
    assert memory_order(info_of(tensor.contiguous())) == tuple(range(tensor.dim()))


def test_gaps_and_repeats_have_no_order():
    overlapping = torch.empty(9).as_strided((3, 3), (1, 2))
    for tensor in (torch.empty(4, 6)[:, :3].T, torch.empty(1, 5).expand(4, 5).T, overlapping):
        assert not is_dense(info_of(tensor))
        assert memory_order(info_of(tensor)) == (0, 1)
