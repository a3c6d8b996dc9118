"""Changes of methods: patched on a class, put on an instance, overridden, or found elsewhere."""

from __future__ import annotations

import types
from typing import Any

import torch
import torch.nn.functional as F
from torch import nn

from tests.changes.case import CONVOLVED, GATED, Case, original_runs
from tests.changes.classes import named, parts


@original_runs(GATED, lasting=True)
def the_code_of_forward_replaced(case: Case) -> None:
    """The function is the object it was."""
    parts().RMSNorm.forward.__code__ = (lambda self, x: self._norm(x) + self.weight).__code__


@original_runs(GATED, lasting=True)
def a_method_patched_on_its_class(case: Case) -> None:
    parts().RMSNorm._norm = lambda self, x: x / (x.abs().mean(-1, keepdim=True) + self.eps)


@original_runs(GATED, lasting=True)
def a_method_shadowed_on_an_instance(case: Case) -> None:
    norm = case.model.norm
    norm._norm = types.MethodType(lambda self, x: x * self.eps, norm)


@original_runs(GATED, lasting=True)
def a_static_method_replaced(case: Case) -> None:
    def _variance(x: torch.Tensor) -> torch.Tensor:
        return x.abs().mean(-1, keepdim=True)

    parts().RMSNorm._variance = staticmethod(_variance)


@original_runs(GATED, lasting=True)
def a_static_method_shadowed(case: Case) -> None:
    def _variance(x: torch.Tensor) -> torch.Tensor:
        return x.abs().amax(-1, keepdim=True)

    case.model.norm._variance = _variance


@original_runs(GATED, lasting=True)
def a_method_of_the_model_patched(case: Case) -> None:
    type(case.model).mixed = lambda self, x, h: x - h


@original_runs(GATED, lasting=True)
def a_method_of_the_model_shadowed(case: Case) -> None:
    case.model.mixed = lambda x, h: x - h


@original_runs(GATED, lasting=True)
def a_property_replaced(case: Case) -> None:
    """At its first two readings it has the value it had."""
    readings: list[int] = []

    def strength(self: Any) -> float:
        readings.append(len(readings))
        return 0.5 if len(readings) == 1 else 5.0

    type(case.model).strength = property(strength)
    with torch.no_grad():
        return [case.model.norm(case.inputs[0]), case.run(), case.run(), len(readings)]


@original_runs(GATED, lasting=True)
def getattr_of_a_class(case: Case) -> None:
    """Parameters are found by it."""
    parts().RMSNorm.__getattr__ = lambda self, name: 3 * nn.Module.__getattr__(self, name)


@original_runs(GATED, lasting=True)
def getattribute_of_a_class(case: Case) -> None:
    def read(self: Any, name: str) -> Any:
        value = object.__getattribute__(self, name)
        return value * 4 if name == "offset" else value + 1 if name == "eps" else value

    parts().RMSNorm.__getattribute__ = read


@original_runs(CONVOLVED, lasting=True)
def the_step_of_a_convolution(case: Case) -> None:
    convolve = case.model.conv._conv_forward
    case.model.conv._conv_forward = lambda x, weight, bias: convolve(x, weight, bias) + 1


@original_runs(CONVOLVED, lasting=True)
def the_step_of_all_convolutions(case: Case) -> None:
    convolve = nn.Conv2d._conv_forward
    nn.Conv2d._conv_forward = lambda self, x, weight, bias: convolve(self, x, 2 * weight, bias)


@original_runs(CONVOLVED, lasting=True)
def a_check_that_raises(case: Case) -> None:
    def no(x: torch.Tensor) -> None:
        raise ArithmeticError("never")

    case.model.norm._check_input_dim = no


@original_runs(CONVOLVED, lasting=True)
def a_dropout_that_drops(case: Case) -> None:
    nn.Dropout.forward = lambda self, x: F.dropout(x, self.p, True)


@original_runs(GATED, lasting=True)
def duck(case: Case) -> Any:
    """The model's forward, called with something else as `self`."""

    class Gated:
        norm, gate, up, down = case.model.norm, case.model.gate, case.model.up, case.model.down
        scale, strength = 2.0, 0.5

        def mixed(self, x: torch.Tensor, h: torch.Tensor) -> torch.Tensor:
            return h

    with torch.no_grad():
        return type(case.model).forward(named(Gated, "Gated")(), *case.inputs)


@original_runs(GATED, lasting=True)
def bases_replaced(case: Case) -> None:
    """An inherited method is another one then; nothing of any class is written to."""

    class Norm(nn.Module):
        @staticmethod
        def _variance(x: torch.Tensor) -> torch.Tensor:
            return x.abs().mean(-1, keepdim=True)

    parts().RMSNorm.__bases__ = (Norm,)


@original_runs(GATED, lasting=True)
def an_inherited_method_hidden(case: Case) -> None:
    parts().RMSNorm._variance = staticmethod(lambda x: x.abs().amax(-1, keepdim=True))


@original_runs(GATED, lasting=True)
def an_inherited_method_patched(case: Case) -> None:
    parts().Norm._variance = staticmethod(lambda x: x.abs().amax(-1, keepdim=True))


@original_runs(GATED, lasting=True)
def the_code_of_linears_forward(case: Case) -> None:
    def twice(self: Any, input: torch.Tensor) -> torch.Tensor:
        return F.linear(input, self.weight * 2, self.bias)

    nn.Linear.forward.__code__ = twice.__code__
