"""Changes that put something around a model or its layers: quantised, sharded, replicated, adapted ones."""

from __future__ import annotations

import copy
import types
from typing import Any

import torch
import torch.nn.functional as F
from torch import nn

from tests.changes.case import GATED, Case, either_runs, original_runs
from tests.changes.classes import like, named


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
