"""Changes by hooks, and by what is built on them: parametrizations, norms of weights, pruning."""

from __future__ import annotations

from typing import Any

import torch
from torch import nn
from torch.nn.modules import module as modules
from torch.nn.utils import parametrizations, parametrize, prune, spectral_norm, weight_norm

from tests.changes.case import CONVOLVED, GATED, STACKED, Case, either_runs, original_runs


def doubled(module: nn.Module, inputs: Any, output: torch.Tensor) -> torch.Tensor:
    return output * 2


@original_runs(GATED, CONVOLVED)
def a_forward_hook(case: Case) -> None:
    case.model.norm.register_forward_hook(doubled)


@original_runs(GATED)
def a_forward_hook_first_of_all(case: Case) -> None:
    case.model.norm.register_forward_hook(doubled, prepend=True, always_call=True)


@original_runs(GATED)
def a_forward_hook_with_keywords(case: Case) -> None:
    case.model.down.register_forward_hook(lambda module, inputs, more, output: output + 1, with_kwargs=True)


@original_runs(GATED)
def a_hook_before_forward(case: Case) -> None:
    case.model.up.register_forward_pre_hook(lambda module, inputs: inputs[0] * 3)


@original_runs(GATED)
def a_hook_before_forward_with_keywords(case: Case) -> None:
    case.model.up.register_forward_pre_hook(lambda module, inputs, more: ((inputs[0] + 3,), more), with_kwargs=True)


@original_runs(STACKED)
def a_hook_on_a_container(case: Case) -> None:
    case.model.last.register_forward_hook(doubled)


@original_runs(STACKED)
def a_hook_in_a_container(case: Case) -> None:
    case.model.last[0].register_forward_pre_hook(lambda module, inputs: inputs[0] + 1)


@original_runs(GATED)
def a_hook_that_only_looks(case: Case) -> Any:
    seen: list[torch.Tensor] = []
    case.model.norm.register_forward_hook(lambda module, inputs, output: seen.append(output))
    return [case.run(), seen]


@original_runs(GATED)
def a_hook_put_into_the_dictionary(case: Case) -> None:
    case.model.gate._forward_hooks[7] = doubled


@original_runs(GATED, lasting=True)
def a_hook_for_all_modules(case: Case) -> None:
    modules.register_module_forward_hook(lambda module, inputs, output: output + 1)


@original_runs(GATED, lasting=True)
def a_hook_for_all_modules_that_always_runs(case: Case) -> Any:
    seen: list[str] = []
    modules.register_module_forward_hook(lambda module, *_: seen.append(type(module).__name__), always_call=True)
    return [case.run(), seen]


@original_runs(GATED, lasting=True)
def a_hook_before_all_modules(case: Case) -> None:
    modules.register_module_forward_pre_hook(lambda module, inputs: tuple(one + 1 for one in inputs))


def gradients(case: Case) -> list[Any]:
    """The result, and what flows back to the input and the parameters."""
    x = case.inputs[0].requires_grad_()
    case.model.zero_grad()
    result = case.run_with_grad()
    result.square().sum().backward()
    return [result, x.grad, *(parameter.grad for parameter in case.model.parameters())]


@original_runs(GATED)
def gradients_wanted(case: Case) -> Any:
    return gradients(case)


@original_runs(GATED)
def gradients_of_the_input_only(case: Case) -> Any:
    case.model.requires_grad_(False)
    return gradients(case)


@original_runs(GATED)
def gradients_of_one_parameter(case: Case) -> Any:
    case.model.requires_grad_(False)
    case.model.up.weight.requires_grad_()
    return case.run_with_grad()


@original_runs(GATED)
def a_backward_hook(case: Case) -> Any:
    case.model.norm.register_full_backward_hook(lambda module, of_inputs, of_outputs: (of_inputs[0] * 2,))
    return gradients(case)


@original_runs(GATED)
def a_hook_before_backward(case: Case) -> Any:
    case.model.down.register_full_backward_pre_hook(lambda module, of_outputs: (of_outputs[0] * 2,))
    return gradients(case)


@original_runs(GATED, lasting=True)
def a_backward_hook_for_all_modules(case: Case) -> Any:
    modules.register_module_full_backward_hook(lambda module, of_inputs, of_outputs: None)
    return gradients(case)


@either_runs(GATED)
def a_backward_hook_without_gradients(case: Case) -> None:
    case.model.norm.register_full_backward_hook(lambda module, of_inputs, of_outputs: None)


@original_runs(GATED)
def a_hook_of_a_tensor(case: Case) -> Any:
    case.model.up.weight.register_hook(lambda gradient: gradient * 2)
    return gradients(case)


@either_runs(GATED)
def a_hook_of_the_model_itself(case: Case) -> None:
    """It is called around the region."""
    case.model.register_forward_hook(doubled)
    case.model.register_forward_pre_hook(lambda module, inputs: inputs[0] + 1)


@either_runs(GATED)
def a_hook_of_the_state(case: Case) -> None:
    case.model.norm._register_state_dict_hook(lambda *given: None)
    case.model.norm.register_load_state_dict_post_hook(lambda *given: None)


class Symmetric(nn.Module):
    def forward(self, weight: torch.Tensor) -> torch.Tensor:
        return weight.triu() + weight.triu(1).transpose(-1, -2)


class Thrice(nn.Module):
    def forward(self, weight: torch.Tensor) -> torch.Tensor:
        return weight * 3


@original_runs(GATED)
def a_parametrization(case: Case) -> None:
    parametrize.register_parametrization(case.model.up, "weight", Thrice())


@original_runs(STACKED)
def a_symmetric_weight(case: Case) -> None:
    parametrize.register_parametrization(case.model.layers[0], "weight", Symmetric())


@original_runs(GATED)
def a_parametrization_of_the_users_class(case: Case) -> None:
    parametrize.register_parametrization(case.model.norm, "weight", Thrice())


@either_runs(GATED)
def a_parametrization_made_permanent(case: Case) -> None:
    parametrize.register_parametrization(case.model.up, "weight", Thrice())
    parametrize.remove_parametrizations(case.model.up, "weight")


@original_runs(GATED)
def a_cached_parametrization(case: Case) -> Any:
    parametrize.register_parametrization(case.model.up, "weight", Thrice())
    with parametrize.cached():
        return [case.run(), case.run()]


@original_runs(GATED)
def an_orthogonal_weight(case: Case) -> None:
    parametrizations.orthogonal(case.model.down)


@original_runs(GATED, CONVOLVED)
def the_norm_of_a_weight(case: Case) -> None:
    layer = case.model.up if hasattr(case.model, "up") else case.model.conv
    parametrizations.weight_norm(layer)
    layer.parametrizations.weight.original0.data.mul_(2)


@original_runs(GATED)
def the_norm_of_a_weight_by_a_hook(case: Case) -> None:
    """The older one leaves a plain tensor in place of the parameter."""
    weight_norm(case.model.up)
    case.model.up.weight_g.data.mul_(2)


@original_runs(GATED)
def the_spectral_norm_of_a_weight(case: Case) -> None:
    torch.manual_seed(3)
    parametrizations.spectral_norm(case.model.up)


@original_runs(GATED)
def the_spectral_norm_of_a_weight_by_a_hook(case: Case) -> None:
    torch.manual_seed(3)
    spectral_norm(case.model.up)


@original_runs(GATED)
def pruned(case: Case) -> None:
    prune.l1_unstructured(case.model.up, "weight", 0.5)
    with torch.no_grad():
        case.model.up.weight_orig.mul_(2)  # the plain tensor in the parameter's place is computed anew by a hook


@either_runs(GATED)
def pruned_for_good(case: Case) -> None:
    prune.l1_unstructured(case.model.up, "weight", 0.5)
    prune.remove(case.model.up, "weight")
