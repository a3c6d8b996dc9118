"""Changes of submodules and of the containers they are in."""

from __future__ import annotations

from typing import Any

import torch
from torch import nn

from tests.changes.case import CONVOLVED, GATED, STACKED, Case, original_runs
from tests.changes.classes import like, named


@original_runs(STACKED)
def a_layer_in_two_places(case: Case) -> None:
    case.model.layers[1] = case.model.layers[0]
    case.model.layers[0] = nn.Linear(32, 32)
    case.model.layers[0].weight, case.model.layers[0].bias = case.parameter(32, 32), case.parameter(32)


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
def a_submodule_in_the_instances_dictionary(case: Case) -> None:
    case.model.__dict__["norm"] = nn.Tanh()
