"""Changes of the tensors a program is given: their class, type, shape, strides, place, and what they share."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import torch
from torch import nn

from tests.changes.case import CONVOLVED, GATED, PRODUCT, Case, original_runs


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


@original_runs(GATED)
def named_dimensions(case: Case) -> None:
    case.inputs[0] = case.inputs[0].refine_names("rows", "columns")
