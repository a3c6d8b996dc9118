"""Changes of what a model is made of: parameters, buffers, submodules, and what is built around them."""

from __future__ import annotations

from typing import Any

import torch
from torch import nn

from tests.changes.case import CONVOLVED, GATED, TIED, Case, either_runs, original_runs


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


@original_runs(GATED)
def a_weight_in_the_instances_dictionary(case: Case) -> None:
    """It hides the parameter, and nothing of the layer's dictionaries is changed."""
    case.model.up.__dict__["weight"] = case.randn(48, 32).t().contiguous().t()


@either_runs(GATED)
def an_equal_weight_in_the_instances_dictionary(case: Case) -> None:
    case.model.up.__dict__["weight"] = case.randn(48, 32)
