"""Changes of where tensors are and of what they share: other devices and layouts, no memory, one tensor for two."""

from __future__ import annotations

from typing import Any

import torch
from torch import nn
from torch._subclasses.fake_tensor import FakeTensorMode

from tests.changes.case import GATED, PRODUCT, WRITTEN, Case, either_runs, original_runs


@original_runs(PRODUCT)
def zeros_without_memory(case: Case) -> None:
    case.inputs[1] = torch._efficientzerotensor((8, 32), dtype=case.dtype)


@original_runs(GATED, PRODUCT)
def not_aligned(case: Case) -> None:
    """A view that begins 4 bytes after what was allocated."""
    case.inputs[0] = case.randn(1 + case.inputs[0].numel())[1:].view(case.inputs[0].shape)


@original_runs(GATED)
def a_weight_not_aligned(case: Case) -> None:
    case.model.up.weight = nn.Parameter(case.randn(3 + 48 * 32)[3:].view(48, 32))


@original_runs(PRODUCT)
def rows_that_overlap(case: Case) -> None:
    case.inputs[0] = case.randn(64).as_strided((8, 32), (4, 1))


@original_runs(GATED, PRODUCT)
def without_memory(case: Case) -> None:
    case.inputs = [one.to("meta") for one in case.inputs]
    if isinstance(case.model, nn.Module):
        case.model.to("meta")


@original_runs(PRODUCT)
def one_without_memory(case: Case) -> None:
    case.inputs[0] = case.inputs[0].to("meta")


@original_runs(PRODUCT)
def fakes(case: Case) -> Any:
    with FakeTensorMode() as mode:
        result = case.run(*(mode.from_tensor(one) for one in case.inputs))
    return [type(result).__name__, str(result.dtype), *result.shape, *result.stride()]


@original_runs(PRODUCT)
def sparse(case: Case) -> None:
    """It has no strides."""
    case.inputs[2] = case.inputs[2].relu().to_sparse()


@original_runs(PRODUCT)
def sparse_by_rows(case: Case) -> None:
    case.inputs[2] = case.inputs[2].relu().to_sparse_csr()


@original_runs(GATED)
def a_sparse_weight(case: Case) -> None:
    case.model.up.weight = nn.Parameter(case.randn(48, 32).relu().to_sparse_csr(), requires_grad=False)


@original_runs(PRODUCT)
def in_a_librarys_layout(case: Case) -> None:
    case.inputs = [one.to_mkldnn() for one in case.inputs]


@original_runs(PRODUCT)
def quantized(case: Case) -> None:
    case.inputs[2] = torch.quantize_per_tensor(case.inputs[2], 0.1, 0, torch.qint8)


@original_runs(PRODUCT)
def nested(case: Case) -> None:
    """It has no shape."""
    case.inputs[0] = torch.nested.nested_tensor([case.randn(3, 32), case.randn(5, 32)])


@either_runs(PRODUCT)
def one_tensor_for_two(case: Case) -> None:
    case.inputs[1] = case.inputs[0]


@either_runs(PRODUCT)
def two_views_of_one(case: Case) -> None:
    case.inputs[1] = case.inputs[0].view(8, 32)


@either_runs(PRODUCT)
def inputs_that_overlap(case: Case) -> None:
    case.inputs[1] = case.inputs[2].view(-1)[64 : 64 + 256].view(8, 32)


@either_runs(WRITTEN)
def what_is_written_is_read_again(case: Case) -> None:
    """The function adds to its second input between two uses of the first."""
    case.inputs[1] = case.inputs[0]


@either_runs(WRITTEN)
def what_is_written_overlaps_a_weight(case: Case) -> None:
    case.inputs[1] = case.inputs[2][8:16]


@either_runs(WRITTEN)
def what_is_written_overlaps_in_part(case: Case) -> None:
    memory = case.randn(9, 32)
    case.inputs[0], case.inputs[1] = memory[:8], memory[1:]


@either_runs(PRODUCT)
def written_between_two_runs(case: Case) -> Any:
    first = case.run()
    case.inputs[0].mul_(3)
    return [first, case.run()]


@either_runs(PRODUCT)
def a_result_written_to(case: Case) -> Any:
    result = case.run()
    result.zero_()
    return [result, case.run()]
