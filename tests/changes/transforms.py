"""Changes by transforms of functions and by gradients that are wanted."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import torch
from torch import nn
from torch.autograd import forward_ad
from torch.utils.checkpoint import checkpoint

from tests.changes.case import CONVOLVED, GATED, PRODUCT, TIED, Case, either_runs, original_runs


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
