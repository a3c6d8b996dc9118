"""Changes of the tensors a program is given: their class, type, shape, strides, place, and what they share."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import torch
from torch import nn
from torch._subclasses.fake_tensor import FakeTensorMode

from tests.changes.case import CONVOLVED, GATED, PRODUCT, WRITTEN, Case, either_runs, original_runs


class Doubling(torch.Tensor):
    """Its results are doubled, whatever is asked of it."""

    @classmethod
    def __torch_function__(cls, func: Any, types: Any, args: Sequence[Any] = (), kwargs: Any = None) -> Any:
        result = super().__torch_function__(func, types, args, kwargs or {})
        return result * 2 if getattr(func, "__name__", "") in ("silu", "linear") else result


class Quiet(torch.Tensor):
    """Its results are plain tensors."""

    __torch_function__ = torch._C._disabled_torch_function_impl


class Scaled(torch.Tensor):
    """A tensor that is twice what it holds, known by its operators only."""

    held: torch.Tensor

    @staticmethod
    def __new__(cls, held: torch.Tensor) -> Scaled:
        made = torch.Tensor._make_wrapper_subclass(cls, held.shape, dtype=held.dtype, strides=held.stride())
        made.held = held
        return made

    @classmethod
    def __torch_dispatch__(cls, func: Any, types: Any, args: Sequence[Any] = (), kwargs: Any = None) -> Any:
        plain = [one.held * 2 if isinstance(one, Scaled) else one for one in args]
        return func(*plain, **(kwargs or {}))


@original_runs(GATED)
def a_subclass_as_input(case: Case) -> None:
    case.inputs[0] = case.inputs[0].as_subclass(Doubling)


@original_runs(PRODUCT)
def a_subclass_as_the_last_input(case: Case) -> None:
    case.inputs[2] = case.inputs[2].as_subclass(Quiet)


@original_runs(GATED, PRODUCT)
def a_wrapper_as_input(case: Case) -> Any:
    case.inputs[0], plain = Scaled(case.inputs[0]), case.inputs[0]
    result = case.run()
    case.inputs[0] = plain
    return result


@original_runs(GATED)
def a_parameter_as_input(case: Case) -> None:
    """The type counts as plain; that it is a subclass of another one does not."""
    case.inputs[0] = nn.Parameter(case.inputs[0].as_subclass(Doubling), requires_grad=False)


@original_runs(GATED)
def a_subclass_as_parameter(case: Case) -> None:
    case.model.up.weight = nn.Parameter(case.randn(48, 32).as_subclass(Doubling))


@original_runs(GATED)
def a_class_of_parameters(case: Case) -> None:
    class Parameter(nn.Parameter):
        @classmethod
        def __torch_function__(cls, func: Any, types: Any, args: Sequence[Any] = (), kwargs: Any = None) -> Any:
            result = super().__torch_function__(func, types, args, kwargs or {})
            return -result if getattr(func, "__name__", "") == "linear" else result

    Parameter.__torch_function__ = torch.Tensor.__torch_function__.__func__.__get__(Parameter)
    case.model.up.weight = Parameter(case.randn(48, 32))


@original_runs(GATED)
def a_wrapper_as_parameter(case: Case) -> None:
    case.model.up.weight = nn.Parameter(Scaled(case.randn(48, 32)), requires_grad=False)


@original_runs(GATED)
def functions_of_tensors_disabled(case: Case) -> None:
    """A subclass whose instances do as tensors do; it is no plain tensor."""
    case.inputs[0] = case.inputs[0].as_subclass(Quiet)
    case.model.up.weight = nn.Parameter(case.randn(48, 32).as_subclass(Quiet), requires_grad=False)


@original_runs(GATED, PRODUCT)
def negated_lazily(case: Case) -> None:
    """The same memory and strides: only a bit says that the values are the others."""
    case.inputs[0] = torch._neg_view(case.inputs[0])


@original_runs(PRODUCT)
def an_imaginary_part(case: Case) -> None:
    """How a program comes to such a view; its strides are others."""
    case.inputs[1] = torch.complex(case.inputs[1], case.inputs[0]).conj().imag


@original_runs(GATED)
def a_weight_negated_lazily(case: Case) -> None:
    case.model.up.weight = nn.Parameter(torch._neg_view(case.model.up.weight.detach()))


@original_runs(PRODUCT)
def complex_numbers(case: Case) -> None:
    case.inputs = [torch.complex(one, one).conj() for one in case.inputs]


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


@original_runs(PRODUCT, CONVOLVED)
def nothing_in_it(case: Case) -> None:
    case.inputs = [one[:0] if number < 2 else one for number, one in enumerate(case.inputs)]


@original_runs(GATED, PRODUCT)
def another_number_of_rows(case: Case) -> None:
    rows = case.inputs[0].shape[0]
    case.inputs = [case.randn(5, one.shape[1]) if one.shape[0] == rows else one for one in case.inputs]


@original_runs(GATED)
def a_dimension_more(case: Case) -> None:
    case.inputs = [case.inputs[0][None]]


@original_runs(GATED)
def a_dimension_less(case: Case) -> None:
    case.inputs = [case.inputs[0][0]]


@original_runs(PRODUCT)
def a_shape_that_broadcasts(case: Case) -> None:
    case.inputs[1] = case.randn(32)


@original_runs(PRODUCT)
def a_shape_that_does_not_fit(case: Case) -> None:
    case.inputs[2] = case.randn(31, 24)


@original_runs(PRODUCT)
def exchanged_strides(case: Case) -> None:
    case.inputs[2] = case.randn(24, 32).t()


@original_runs(PRODUCT)
def gaps_between_rows(case: Case) -> None:
    case.inputs[0] = case.randn(8, 64)[:, :32]


@original_runs(PRODUCT)
def expanded(case: Case) -> None:
    case.inputs[1] = case.randn(1, 32).expand(8, 32)


@original_runs(PRODUCT)
def rows_that_overlap(case: Case) -> None:
    case.inputs[0] = case.randn(64).as_strided((8, 32), (4, 1))


@original_runs(CONVOLVED)
def channels_last(case: Case) -> None:
    case.inputs[0] = case.inputs[0].to(memory_format=torch.channels_last)


@original_runs(CONVOLVED)
def weights_with_channels_last(case: Case) -> None:
    case.model.to(memory_format=torch.channels_last)


@original_runs(GATED)
def a_weight_with_exchanged_strides(case: Case) -> None:
    case.model.up.weight = nn.Parameter(case.randn(32, 48).t())


@original_runs(PRODUCT)
def other_types(case: Case) -> None:
    case.inputs = [one.double() for one in case.inputs]


@original_runs(PRODUCT)
def one_of_another_type(case: Case) -> None:
    """The original raises."""
    case.inputs[2] = case.inputs[2].half()


@original_runs(GATED)
def whole_numbers(case: Case) -> None:
    case.inputs[0] = torch.arange(6 * 32).view(6, 32)


@original_runs(PRODUCT)
def no_tensor(case: Case) -> None:
    case.inputs[0] = None


@original_runs(PRODUCT)
def a_number_for_a_tensor(case: Case) -> None:
    case.inputs[1] = 2.5


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


@original_runs(GATED)
def named_dimensions(case: Case) -> None:
    case.inputs[0] = case.inputs[0].refine_names("rows", "columns")


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
