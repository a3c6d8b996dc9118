"""Changes of what a class or a function is: other ones of the same name, and patched ones."""

from __future__ import annotations

import functools
import sys
from typing import Any

import torch
import torch.nn.functional as F
from torch import nn

from tests.changes.case import CONVOLVED, GATED, TIED, Case, either_runs, original_runs


def parts() -> Any:
    """The file that the norm and the gate are in."""
    return sys.modules["gated_parts"]


def named(kind: type, name: str) -> type:
    kind.__name__ = kind.__qualname__ = name
    return kind


def like(layer: nn.Module, kind: type) -> Any:
    """An instance of the class with all that the layer has."""
    made = kind.__new__(kind)
    made.__dict__.update(layer.__dict__)
    return made


@original_runs(GATED, lasting=True)
def loras_linear(case: Case) -> None:
    """loralib's: a subclass of nn.Linear called Linear, with a weight of its own beside it."""

    class Linear(nn.Linear):
        def __init__(self) -> None:
            super().__init__(32, 48, bias=False)
            self.lora_A, self.lora_B = case.parameter(4, 32), case.parameter(48, 4)

        def forward(self, x: torch.Tensor) -> torch.Tensor:
            return F.linear(x, self.weight) + x @ self.lora_A.T @ self.lora_B.T

    made = named(Linear, "Linear")()
    made.weight = case.model.up.weight
    case.model.up = made


@original_runs(GATED, lasting=True)
def a_norm_of_the_same_name(case: Case) -> None:
    class RMSNorm(nn.Module):
        offset = 0.0

        def __init__(self, weight: nn.Parameter) -> None:
            super().__init__()
            self.eps, self.weight = 1e-5, weight

        def _variance(self, x: torch.Tensor) -> torch.Tensor:
            return x.var(-1, keepdim=True)

        def forward(self, x: torch.Tensor) -> torch.Tensor:
            return (x - x.mean(-1, keepdim=True)) * torch.rsqrt(self._variance(x) + self.eps) * self.weight

    case.model.norm = named(RMSNorm, "RMSNorm")(case.model.norm.weight)


@original_runs(GATED, lasting=True)
def the_class_of_an_instance_replaced(case: Case) -> None:
    class Doubled(parts().RMSNorm):
        def forward(self, x: torch.Tensor) -> torch.Tensor:
            return 2 * super().forward(x)

    case.model.norm.__class__ = named(Doubled, "RMSNorm")


@original_runs(GATED, lasting=True)
def a_wrapper_with_a_weight(case: Case) -> None:
    """As peft's Linear: no subclass, and its `weight` is the base layer's."""

    class Linear(nn.Module):
        def __init__(self, base: nn.Module) -> None:
            super().__init__()
            self.base = base

        @property
        def weight(self) -> torch.Tensor:
            return self.base.weight

        def forward(self, x: torch.Tensor) -> torch.Tensor:
            return self.base(x) * 1.5

    case.model.up = named(Linear, "Linear")(case.model.up)


@original_runs(GATED, lasting=True)
def call_overridden_in_a_subclass(case: Case) -> None:
    class Linear(nn.Linear):
        def __call__(self, x: torch.Tensor) -> torch.Tensor:
            return super().__call__(x) + 1

    case.model.up = like(case.model.up, named(Linear, "Linear"))


@original_runs(GATED, lasting=True)
def call_patched_on_the_class(case: Case) -> None:
    parts().RMSNorm.__call__ = lambda self, x: self.forward(x) * 2


@original_runs(GATED, lasting=True)
def call_of_all_modules_patched(case: Case) -> None:
    call = nn.Module.__call__
    nn.Module.__call__ = lambda self, *given: call(self, *given) * 2


@original_runs(GATED, lasting=True)
def call_impl_of_all_modules_patched(case: Case) -> None:
    call = nn.Module._call_impl
    nn.Module._call_impl = lambda self, *given: call(self, *given) * 2


@original_runs(GATED, lasting=True)
def call_impl_on_an_instance(case: Case) -> None:
    call = case.model.norm._call_impl
    case.model.norm._call_impl = lambda *given: call(*given) * 2


@original_runs(GATED, CONVOLVED, lasting=True)
def forward_on_an_instance(case: Case) -> None:
    forward = case.model.norm.forward
    case.model.norm.forward = lambda x: forward(x) * 2


@original_runs(GATED, lasting=True)
def forward_on_a_librarys_instance(case: Case) -> None:
    forward = case.model.down.forward
    case.model.down.forward = lambda x: forward(x) - 1


@original_runs(GATED, lasting=True)
def forward_patched_on_its_class(case: Case) -> None:
    parts().RMSNorm.forward = lambda self, x: self._norm(x)


@original_runs(GATED, TIED, lasting=True)
def forward_patched_on_linear(case: Case) -> None:
    nn.Linear.forward = lambda self, x: F.linear(x, self.weight) * 3


@original_runs(GATED, lasting=True)
def forward_wrapped(case: Case) -> None:
    """Who looks through __wrapped__ sees the function that was analysed."""
    forward = parts().RMSNorm.forward

    @functools.wraps(forward)
    def wrapped(self: Any, x: torch.Tensor) -> torch.Tensor:
        return forward(self, x).clamp(-1, 1)

    parts().RMSNorm.forward = wrapped


@original_runs(GATED, lasting=True)
def a_subclass_of_the_model(case: Case) -> None:
    class Gated(type(case.model)):
        def mixed(self, x: torch.Tensor, h: torch.Tensor) -> torch.Tensor:
            return x * h

    case.model = like(case.model, named(Gated, "Gated"))


@original_runs(GATED, lasting=True)
def a_subclass_of_the_norm(case: Case) -> None:
    class RMSNorm(parts().RMSNorm):
        def _norm(self, x: torch.Tensor) -> torch.Tensor:
            return super()._norm(x) + 1

    case.model.norm = like(case.model.norm, named(RMSNorm, "RMSNorm"))


@either_runs(GATED, lasting=True)
def a_subclass_that_changes_nothing(case: Case) -> None:
    class Special(nn.Linear):
        pass

    case.model.up = like(case.model.up, Special)


@original_runs(GATED, lasting=True)
def call_of_linear_patched(case: Case) -> None:
    """It was inherited."""
    nn.Linear.__call__ = lambda self, x: self.forward(x) * 2


@either_runs(GATED)
def a_layer_that_compiles_itself(case: Case) -> None:
    case.model.up.compile(backend="eager")


@original_runs(GATED)
def the_compiled_call_of_a_layer(case: Case) -> None:
    """What nn.Module.compile leaves in a module comes before all else."""
    layer = case.model.up
    layer._compiled_call_impl = lambda x: layer.forward(x) * 2
