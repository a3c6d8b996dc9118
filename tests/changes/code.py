"""Changes of what functions read: globals, defaults, closures, class attributes, PyTorch's own functions, and files."""

from __future__ import annotations

import types
from typing import Any

import torch
import torch.nn.functional as F
from torch import nn

from tests.changes.case import FILLED, GATED, PRODUCT, STACKED, TIED, Case, original_runs
from tests.changes.classes import parts


@original_runs(GATED, lasting=True)
def a_number_of_the_module(case: Case) -> None:
    case.module.RESIDUAL = 0.25


@original_runs(GATED, lasting=True)
def a_number_of_another_module(case: Case) -> None:
    parts().STRENGTH = 3.0


@original_runs(GATED, lasting=True)
def a_number_that_is_a_tensor_now(case: Case) -> None:
    """It is equal to the number that was read, and its results would have gradients."""
    case.module.RESIDUAL = torch.tensor(0.5, dtype=torch.float64).requires_grad_()


@original_runs(GATED, lasting=True)
def a_class_attribute(case: Case) -> None:
    type(case.model).scale = 4.0


@original_runs(GATED, lasting=True)
def a_class_attribute_of_a_submodule(case: Case) -> None:
    parts().RMSNorm.offset = 1.0


@original_runs(GATED, lasting=True)
def an_attribute_over_the_classs(case: Case) -> None:
    case.model.norm.offset = 0.5


@original_runs(GATED, lasting=True)
def a_tensor_over_the_classs_attribute(case: Case) -> None:
    case.model.norm.offset = case.randn(32)


@original_runs(GATED, lasting=True)
def the_epsilon(case: Case) -> None:
    case.model.norm.eps = 0.1


@original_runs(TIED, lasting=True)
def the_epsilon_of_a_librarys_norm(case: Case) -> None:
    case.model.norm.eps = 0.1


@original_runs(GATED, lasting=True)
def a_default_argument(case: Case) -> None:
    parts().gate.__defaults__ = (2.0,)


@original_runs(GATED, lasting=True)
def a_default_of_a_keyword(case: Case) -> None:
    parts().gate.__kwdefaults__["shift"] = 1.0


@original_runs(GATED, lasting=True)
def what_a_closure_holds(case: Case) -> None:
    parts().halved.__closure__[0].cell_contents = 0.75


@original_runs(GATED, lasting=True)
def a_closure_of_the_same_code(case: Case) -> None:
    parts().halved = parts().multiplied(5.0)


@original_runs(GATED, lasting=True)
def a_helper_replaced(case: Case) -> None:
    def gate(a: torch.Tensor, b: torch.Tensor) -> torch.Tensor:
        return torch.tanh(a) * b

    case.module.gate = gate


@original_runs(GATED, lasting=True)
def a_helper_of_the_file_replaced(case: Case) -> None:
    def project(layer: nn.Module, x: torch.Tensor) -> torch.Tensor:
        return layer(x) + x.sum()

    case.module.project = project


@original_runs(GATED, lasting=True)
def the_code_of_a_helper(case: Case) -> None:
    case.module.project.__code__ = (lambda layer, x: -layer(x)).__code__


@original_runs(GATED, lasting=True)
def the_global_that_functions_come_from(case: Case) -> None:
    parts().F = types.SimpleNamespace(silu=F.relu)


@original_runs(GATED, lasting=True)
def a_builtin_hidden(case: Case) -> None:
    """`torch` is the name of something else in the norm's file."""
    parts().torch = types.SimpleNamespace(rsqrt=lambda x: 1 / x)


@original_runs(GATED, PRODUCT, lasting=True)
def silu_patched(case: Case) -> None:
    F.silu = F.relu


@original_runs(GATED, TIED, lasting=True)
def linear_patched(case: Case) -> None:
    linear = F.linear
    F.linear = lambda x, weight, bias=None: linear(x, weight) + 2


@original_runs(PRODUCT, lasting=True)
def matmul_patched(case: Case) -> None:
    matmul = torch.matmul
    torch.matmul = lambda x, y: 2 * matmul(x, y)


@original_runs(GATED, lasting=True)
def rsqrt_patched(case: Case) -> None:
    rsqrt = torch.rsqrt
    torch.rsqrt = lambda x: rsqrt(x).round(decimals=1)


@original_runs(GATED, lasting=True)
def a_method_of_tensors_patched(case: Case) -> None:
    torch.Tensor.mean = lambda self, *given, **more: torch.sum(self, *given, **more)


@original_runs(TIED, lasting=True)
def transpose_patched(case: Case) -> None:
    torch.Tensor.transpose = lambda self, one, two: torch.transpose(self, one, two) * 2


@original_runs(PRODUCT, lasting=True)
def multiplication_of_tensors_patched(case: Case) -> None:
    torch.Tensor.__mul__ = lambda self, other: torch.add(self, other)


@original_runs(TIED, lasting=True)
def the_matrix_product_of_tensors_patched(case: Case) -> None:
    torch.Tensor.__matmul__ = lambda self, other: torch.matmul(self, other) + 1


@original_runs(TIED, lasting=True)
def softmax_patched(case: Case) -> None:
    F.softmax = lambda x, dim: torch.sigmoid(x)


@original_runs(TIED, lasting=True)
def the_librarys_norm_patched(case: Case) -> None:
    norm = F.layer_norm
    F.layer_norm = lambda *given: norm(*given) * 2


@original_runs(TIED, lasting=True)
def what_the_librarys_norm_calls_patched(case: Case) -> None:
    norm = torch.layer_norm
    torch.layer_norm = lambda *given: norm(*given) + 1


@original_runs(TIED, lasting=True)
def a_function_of_python_patched(case: Case) -> None:
    case.module.math.sqrt = lambda x: x


@original_runs(FILLED, lasting=True)
def ones_patched(case: Case) -> None:
    torch.ones = torch.zeros


@original_runs(FILLED, lasting=True)
def full_patched(case: Case) -> None:
    full = torch.full
    torch.full = lambda shape, value: full(shape, 3 * value)


@original_runs(STACKED, lasting=True)
def a_number_in_a_list(case: Case) -> None:
    case.model.factors[1] = 2.0


@original_runs(STACKED, lasting=True)
def a_list_replaced(case: Case) -> None:
    class Factors(list[float]):
        def __getitem__(self, at: Any) -> Any:
            return 3.0

    case.model.factors = Factors([1.0, 0.5])


@original_runs(STACKED, lasting=True)
def a_flag_in_a_dictionary(case: Case) -> None:
    case.model.options["residual"] = False


@original_runs(STACKED, lasting=True)
def a_number_that_counts_as_the_same(case: Case) -> None:
    """1.0 == True: the product with it has the same values; and -0.0 == 0.0."""
    case.model.factors[0] = torch.tensor([1.0])
