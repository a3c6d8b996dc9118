"""Changes of what a model is made of: parameters, buffers, submodules, and what is built around them."""

from __future__ import annotations

import copy
import types
from typing import Any

import torch
import torch.nn.functional as F
from torch import nn

from tests.changes.case import CONVOLVED, GATED, STACKED, TIED, Case, either_runs, original_runs
from tests.changes.classes import like, named


@original_runs(GATED)
def a_bias_where_none_was(case: Case) -> None:
    case.model.up.bias = case.parameter(48)


@original_runs(GATED)
def a_bias_registered(case: Case) -> None:
    case.model.down.register_parameter("bias", case.parameter(32))


@original_runs(TIED)
def a_bias_of_the_norm(case: Case) -> None:
    case.model.norm.bias = case.parameter(32)


@original_runs(CONVOLVED)
def a_bias_of_the_convolution(case: Case) -> None:
    case.model.conv.bias = case.parameter(8)


@original_runs(GATED)
def a_layer_with_a_bias(case: Case) -> None:
    """Of the same class, where one without was."""
    layer = nn.Linear(32, 48)
    layer.weight, layer.bias = case.model.up.weight, case.parameter(48)
    case.model.up = layer


@original_runs(TIED)
def a_bias_less(case: Case) -> None:
    case.model.first.bias = None


@original_runs(TIED)
def a_norm_without_a_weight(case: Case) -> None:
    case.model.norm = nn.LayerNorm(32, elementwise_affine=False)


@original_runs(TIED)
def the_weight_of_the_norm_less(case: Case) -> None:
    case.model.norm.weight = None


@original_runs(GATED)
def a_weight_less(case: Case) -> None:
    """The original raises."""
    case.model.up.weight = None


@original_runs(GATED)
def a_weight_deleted(case: Case) -> None:
    """The original raises."""
    del case.model.up.weight


@original_runs(TIED)
def untied(case: Case) -> None:
    case.model.second.weight = case.parameter(16, 32)


@original_runs(TIED)
def untied_by_the_other(case: Case) -> None:
    case.model.first.weight = case.parameter(16, 32)


@original_runs(TIED)
def untied_by_a_copy_that_is_written_to(case: Case) -> None:
    case.model.second.weight = nn.Parameter(case.model.first.weight.detach().clone())
    with torch.no_grad():
        case.model.first.weight.mul_(2)


@either_runs(GATED)
def tied(case: Case) -> None:
    case.model.up.weight = case.model.gate.weight


@either_runs(GATED)
def tied_layers(case: Case) -> None:
    case.model.up = case.model.gate


@either_runs(TIED)
def tied_by_the_memory(case: Case) -> None:
    case.model.second.weight = nn.Parameter(case.model.first.weight.detach())


@original_runs(STACKED)
def a_layer_in_two_places(case: Case) -> None:
    case.model.layers[1] = case.model.layers[0]
    case.model.layers[0] = nn.Linear(32, 32)
    case.model.layers[0].weight, case.model.layers[0].bias = case.parameter(32, 32), case.parameter(32)


@original_runs(GATED)
def another_size_within(case: Case) -> None:
    case.model.gate.weight, case.model.up.weight = case.parameter(56, 32), case.parameter(56, 32)
    case.model.down.weight = case.parameter(32, 56)


@original_runs(GATED)
def a_weight_of_another_type(case: Case) -> None:
    """The original raises."""
    case.model.up.weight = nn.Parameter(case.model.up.weight.double())


@original_runs(GATED)
def the_data_of_a_weight_of_another_type(case: Case) -> Any:
    case.model.double()
    case.inputs[0] = case.inputs[0].double()


@original_runs(GATED, CONVOLVED)
def halved(case: Case) -> None:
    case.model.half()
    case.inputs[0] = case.inputs[0].half()


@original_runs(GATED)
def half_of_it_in_bfloat16(case: Case) -> None:
    case.model.to(torch.bfloat16)
    case.inputs[0] = case.inputs[0].bfloat16()


@original_runs(CONVOLVED)
def no_running_mean(case: Case) -> None:
    """Then a batch norm computes the batch's, in eval too."""
    case.model.norm.running_mean = case.model.norm.running_var = None


@original_runs(CONVOLVED)
def a_buffer_of_another_size(case: Case) -> None:
    """The original raises."""
    case.model.norm.running_mean = case.randn(7)


@original_runs(CONVOLVED)
def a_buffer_of_another_type(case: Case) -> None:
    case.model.norm.running_var = case.model.norm.running_var.double()


@original_runs(CONVOLVED)
def a_norm_without_statistics(case: Case) -> None:
    norm = nn.BatchNorm2d(8, track_running_stats=False).eval()
    norm.weight, norm.bias = case.model.norm.weight, case.model.norm.bias
    case.model.norm = norm


@original_runs(CONVOLVED)
def the_step_of_a_convolution_in_space(case: Case) -> None:
    case.model.conv.stride = (2, 2)


@original_runs(CONVOLVED)
def the_edge_of_a_convolution(case: Case) -> None:
    case.model.conv.padding_mode = "circular"


@original_runs(CONVOLVED)
def a_convolution_of_the_same_weights(case: Case) -> None:
    conv = nn.Conv2d(4, 8, 3, padding=2, dilation=2, bias=False)
    conv.weight = case.model.conv.weight
    case.model.conv = conv


@original_runs(CONVOLVED)
def a_transposed_convolution(case: Case) -> None:
    conv = nn.ConvTranspose2d(4, 8, 3, padding=1, bias=False)
    conv.weight = nn.Parameter(case.randn(4, 8, 3, 3))
    case.model.conv = conv


@original_runs(GATED, CONVOLVED)
def a_submodule_that_does_nothing(case: Case) -> None:
    case.model.norm = nn.Identity()


@original_runs(GATED)
def a_submodule_less(case: Case) -> None:
    """The original raises."""
    case.model.norm = None


@original_runs(GATED)
def a_submodule_deleted(case: Case) -> None:
    """The original raises."""
    del case.model.norm


@original_runs(GATED)
def a_function_for_a_submodule(case: Case) -> None:
    del case.model.norm
    case.model.norm = torch.tanh


@original_runs(STACKED)
def an_activation_replaced(case: Case) -> None:
    case.model.last[0] = nn.ReLU()


@original_runs(STACKED)
def the_order_of_a_sequence(case: Case) -> None:
    case.model.last = nn.Sequential(case.model.last[1], case.model.last[0])


@original_runs(STACKED)
def a_longer_sequence(case: Case) -> None:
    case.model.last.append(nn.Tanh())


@original_runs(STACKED)
def a_shorter_sequence(case: Case) -> None:
    del case.model.last[0]


@original_runs(STACKED)
def a_shorter_list(case: Case) -> None:
    """The last layer is the first then."""
    del case.model.layers[1]


@original_runs(STACKED)
def a_longer_list(case: Case) -> None:
    layer = nn.Linear(32, 32, bias=False)
    layer.weight = case.parameter(32, 32)
    case.model.layers.append(layer)


@original_runs(STACKED)
def a_list_that_counts_otherwise(case: Case) -> None:
    class ModuleList(nn.ModuleList):
        def __getitem__(self, at: Any) -> Any:
            return super().__getitem__(0)

    case.model.layers = like(case.model.layers, named(ModuleList, "ModuleList"))


@original_runs(STACKED)
def a_sequence_that_runs_otherwise(case: Case) -> None:
    class Sequential(nn.Sequential):
        def forward(self, x: torch.Tensor) -> torch.Tensor:
            return super().forward(x) + x

    case.model.last = like(case.model.last, named(Sequential, "Sequential"))


@original_runs(STACKED)
def an_entry_replaced(case: Case) -> None:
    case.model.heads["main"] = nn.Sequential(case.model.heads["main"], nn.Tanh())


@original_runs(STACKED)
def a_sequences_order_in_its_dictionary(case: Case) -> None:
    modules = case.model.last._modules
    modules["0"] = modules.pop("0")


@original_runs(GATED)
def a_weight_in_the_instances_dictionary(case: Case) -> None:
    """It hides the parameter, and nothing of the layer's dictionaries is changed."""
    case.model.up.__dict__["weight"] = case.randn(48, 32).t().contiguous().t()


@either_runs(GATED)
def an_equal_weight_in_the_instances_dictionary(case: Case) -> None:
    case.model.up.__dict__["weight"] = case.randn(48, 32)


@original_runs(GATED)
def a_submodule_in_the_instances_dictionary(case: Case) -> None:
    case.model.__dict__["norm"] = nn.Tanh()


@original_runs(GATED)
def quantized_for_training(case: Case) -> None:
    """Its class is called Linear as well."""
    from torch.ao.nn import qat
    from torch.ao.quantization import get_default_qat_qconfig

    layer = case.model.up
    layer.qconfig = get_default_qat_qconfig("x86")
    case.model.up = qat.Linear.from_float(layer)


@original_runs(GATED)
def quantized_dynamically(case: Case) -> None:
    from torch.ao.quantization import quantize_dynamic

    case.model = quantize_dynamic(case.model, {nn.Linear})


@original_runs(GATED)
def quantized_by_hand(case: Case) -> None:
    """Whole numbers and a scale in the parameter's place."""

    class Linear(nn.Linear):
        def forward(self, x: torch.Tensor) -> torch.Tensor:
            return F.linear(x, self.held.to(x.dtype) * self.scale)

    layer = like(case.model.up, named(Linear, "Linear"))
    layer.scale = layer.weight.abs().max().item() / 127
    layer.register_buffer("held", (layer.weight / layer.scale).round().to(torch.int8))
    case.model.up = layer


@original_runs(GATED)
def lora_by_a_method(case: Case) -> None:
    """On the instance, as some libraries put their adapters on."""
    low, high, layer = case.randn(4, 32), case.randn(48, 4), case.model.up
    forward = layer.forward
    layer.forward = types.MethodType(lambda self, x: forward(x) + x @ low.T @ high.T, layer)


@either_runs(GATED)
def lora_merged(case: Case) -> None:
    with torch.no_grad():
        case.model.up.weight.add_(case.randn(48, 4) @ case.randn(4, 32))


class Sharded(nn.Module):
    """As FSDP: one flat parameter, of which the layers' weights are views that are made anew for each run."""

    def __init__(self, model: nn.Module, gap: int) -> None:
        super().__init__()
        self.model, self.places, parts, at = model, [], [], gap
        for path in ("gate", "up", "down"):
            layer = model.get_submodule(path)
            self.places.append((layer, at, layer.weight.shape))
            parts += [layer.weight.new_zeros(gap), layer.weight.detach().reshape(-1)]
            at += layer.weight.numel() + gap
            del layer.weight
        self.flat = nn.Parameter(torch.cat(parts))

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        for layer, at, shape in self.places:
            layer.weight = self.flat[at : at + shape.numel()].view(shape)
        return self.model(x)

    def __getattr__(self, name: str) -> Any:
        try:
            return super().__getattr__(name)
        except AttributeError:
            return getattr(super().__getattr__("model"), name)


@either_runs(GATED)
def sharded(case: Case) -> Any:
    case.model = Sharded(case.model, 0)
    first = case.run()
    case.model.flat.data.mul_(2)
    return [first, case.run()]


@original_runs(GATED)
def sharded_and_not_aligned(case: Case) -> None:
    case.model = Sharded(case.model, 1)


@either_runs(GATED)
def replicated(case: Case) -> None:
    """As data parallelism does: a replica's parameters are plain tensors among its attributes."""
    model = case.model
    replica = model._replicate_for_data_parallel()
    for name, module in model.named_children():
        copied = module._replicate_for_data_parallel()
        for key, parameter in module._parameters.items():
            if parameter is None:
                copied._parameters[key] = None
            else:
                setattr(copied, key, parameter.detach().clone())
        setattr(replica, name, copied)
    case.model = replica


@either_runs(GATED)
def a_shallow_copy(case: Case) -> None:
    model = copy.copy(case.model)
    model._modules = dict(model._modules)
    model.up = nn.Linear(32, 48, bias=False)
    model.up.weight = case.parameter(48, 32)
    case.model = model


@original_runs(GATED)
def a_layer_without_a_size_yet(case: Case) -> None:
    case.model.up = nn.LazyLinear(48, bias=False)


@original_runs(GATED)
def a_parameter_without_a_size_yet(case: Case) -> None:
    """The original raises."""
    case.model.up.weight = nn.UninitializedParameter()
