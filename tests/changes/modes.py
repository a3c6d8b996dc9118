"""Changes of how PyTorch runs: modes, transforms, flags, types and devices by default."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

import torch
from torch import nn
from torch.autograd import forward_ad
from torch.overrides import TorchFunctionMode
from torch.utils._python_dispatch import TorchDispatchMode
from torch.utils.checkpoint import checkpoint
from torch.utils.flop_counter import FlopCounterMode

from tests.changes.case import CONVOLVED, FILLED, GATED, PRODUCT, TIED, Case, either_runs, original_runs


@original_runs(GATED, PRODUCT)
def autocast(case: Case) -> Any:
    with torch.autocast("cpu", torch.bfloat16):
        return case.run()


@either_runs(GATED)
def autocast_of_another_device(case: Case) -> Any:
    with torch.autocast("cuda", torch.float16):
        return case.run()


@either_runs(GATED)
def autocast_turned_off(case: Case) -> Any:
    with torch.autocast("cpu", torch.bfloat16), torch.autocast("cpu", enabled=False):
        return case.run()


@original_runs(FILLED, lasting=True)
def the_type_by_default(case: Case) -> None:
    torch.set_default_dtype(torch.float64)


@original_runs(FILLED, lasting=True)
def the_type_by_default_is_smaller(case: Case) -> None:
    torch.set_default_dtype(torch.float16)


@original_runs(FILLED, lasting=True)
def the_device_by_default(case: Case) -> None:
    torch.set_default_device("meta")


@original_runs(FILLED)
def a_device_for_a_while(case: Case) -> Any:
    with torch.device("meta"):
        return case.run()


class Twice(TorchFunctionMode):
    """Results of one function are doubled."""

    def __init__(self, name: str) -> None:
        super().__init__()
        self.name = name

    def __torch_function__(self, func: Any, types: Any, args: Sequence[Any] = (), kwargs: Any = None) -> Any:
        result = func(*args, **(kwargs or {}))
        return 2 * result if getattr(func, "__name__", "") == self.name else result


@original_runs(GATED, PRODUCT)
def a_mode_of_functions(case: Case) -> Any:
    with Twice("silu"):
        return case.run()


@original_runs(TIED)
def a_mode_of_functions_of_the_library(case: Case) -> Any:
    with Twice("layer_norm"):
        return case.run()


@original_runs(FILLED)
def a_mode_of_functions_without_tensors(case: Case) -> Any:
    with Twice("ones"):
        return case.run()


class Negated(TorchDispatchMode):
    """Results of matrix products are negated."""

    def __torch_dispatch__(self, func: Any, types: Any, args: Sequence[Any] = (), kwargs: Any = None) -> Any:
        result = func(*args, **(kwargs or {}))
        return -result if func in (torch.ops.aten.mm.default, torch.ops.aten.convolution.default) else result


@original_runs(GATED, CONVOLVED)
def a_mode_of_operators(case: Case) -> Any:
    with Negated():
        return case.run()


@original_runs(TIED)
def operations_counted(case: Case) -> Any:
    with FlopCounterMode(display=False) as counter:
        result = case.run()
    return [result, counter.get_total_flops()]


@original_runs(GATED, CONVOLVED)
def vmap(case: Case) -> Any:
    stacked = [torch.stack([one, one * 2]) for one in case.inputs]
    with torch.no_grad():
        return torch.vmap(case.model)(*stacked)


@original_runs(GATED)
def vmap_over_parameters(case: Case) -> Any:
    state = {name: torch.stack([one, -one]) for name, one in case.model.state_dict().items()}

    def called(state: Mapping[str, torch.Tensor]) -> torch.Tensor:
        return torch.func.functional_call(case.model, state, tuple(case.inputs))

    with torch.no_grad():
        return torch.vmap(called)(state)


@original_runs(GATED)
def gradient_by_transform(case: Case) -> Any:
    def total(*inputs: torch.Tensor) -> torch.Tensor:
        return case.model(*inputs).square().sum()

    return torch.func.grad(total)(*case.inputs)


@original_runs(TIED)
def tangents_by_transform(case: Case) -> Any:
    with torch.no_grad():
        return torch.func.jvp(case.model, tuple(case.inputs), tuple(torch.ones_like(one) for one in case.inputs))


@original_runs(PRODUCT)
def tangents(case: Case) -> Any:
    with torch.no_grad(), forward_ad.dual_level():
        duals = [forward_ad.make_dual(one, torch.ones_like(one)) for one in case.inputs]
        return list(forward_ad.unpack_dual(case.model(*duals)))


@original_runs(GATED)
def tangents_of_a_parameter(case: Case) -> Any:
    with torch.no_grad(), forward_ad.dual_level():
        weight = case.model.up.weight.detach()
        del case.model.up.weight
        case.model.up.weight = forward_ad.make_dual(weight, torch.ones_like(weight))
        return list(forward_ad.unpack_dual(case.run()))


@original_runs(PRODUCT)
def a_jacobian(case: Case) -> Any:
    return torch.func.jacrev(case.model, argnums=2)(*case.inputs)


@original_runs(PRODUCT)
def functionalized(case: Case) -> Any:
    with torch.no_grad():
        return torch.func.functionalize(case.model)(*case.inputs)


@either_runs(GATED)
def called_with_other_parameters(case: Case) -> Any:
    state = {name: one * 2 for name, one in case.model.state_dict().items()}
    with torch.no_grad():
        return torch.func.functional_call(case.model, state, tuple(case.inputs))


@original_runs(GATED)
def called_with_a_parameter_of_another_size(case: Case) -> Any:
    state = {"gate.weight": case.randn(40, 32), "up.weight": case.randn(40, 32), "down.weight": case.randn(32, 40)}
    with torch.no_grad():
        return torch.func.functional_call(case.model, state, tuple(case.inputs))


@original_runs(TIED)
def called_with_untied_parameters(case: Case) -> Any:
    state = {"first.weight": case.randn(16, 32), "second.weight": case.randn(16, 32)}
    with torch.no_grad():
        return torch.func.functional_call(case.model, state, tuple(case.inputs), tie_weights=False)


@original_runs(GATED)
def computed_again_for_gradients(case: Case) -> Any:
    x = case.inputs[0].requires_grad_()
    result = checkpoint(case.run_with_grad, x, use_reentrant=False)
    result.sum().backward()
    return [result, x.grad, case.model.up.weight.grad]


@either_runs(GATED, lasting=True)
def deterministic(case: Case) -> None:
    torch.use_deterministic_algorithms(True)


@either_runs(GATED, lasting=True)
def matrix_products_less_exact(case: Case) -> None:
    torch.set_float32_matmul_precision("medium")


@either_runs(GATED)
def anomalies_looked_for(case: Case) -> Any:
    with torch.autograd.set_detect_anomaly(True):
        return case.run()


@either_runs(GATED)
def profiled(case: Case) -> Any:
    with torch.profiler.profile(activities=[torch.profiler.ProfilerActivity.CPU]):
        return case.run()


@original_runs(CONVOLVED)
def training(case: Case) -> Any:
    case.model.train()
    return [case.run(), *case.model.buffers()]


@original_runs(CONVOLVED)
def training_of_a_submodule(case: Case) -> None:
    case.model.drop.train()


@original_runs(CONVOLVED)
def training_by_the_attribute(case: Case) -> None:
    case.model.drop.training = True


@original_runs(CONVOLVED)
def training_of_the_norm(case: Case) -> Any:
    case.model.norm.train()
    return [case.run(), *case.model.buffers()]


@either_runs(GATED)
def training_without_meaning(case: Case) -> None:
    case.model.train()


class Layer(nn.Module):
    """Wants gradients, whatever its caller wants."""

    def __init__(self, model: nn.Module) -> None:
        super().__init__()
        self.model = model

    @torch.enable_grad()
    def forward(self, x: torch.Tensor) -> torch.Tensor:
        return self.model(x)


@original_runs(GATED)
def gradients_enabled_inside(case: Case) -> None:
    case.model = Layer(case.model)
