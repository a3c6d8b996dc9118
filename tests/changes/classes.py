"""Changes of what a class or a function is: other ones of the same name, and patched ones."""

from __future__ import annotations

import functools
import sys
import types
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
def call_of_linear_patched(case: Case) -> None:
    """It was inherited."""
    nn.Linear.__call__ = lambda self, x: self.forward(x) * 2


@original_runs(GATED, lasting=True)
def the_code_of_linears_forward(case: Case) -> None:
    def twice(self: Any, input: torch.Tensor) -> torch.Tensor:
        return F.linear(input, self.weight * 2, self.bias)

    nn.Linear.forward.__code__ = twice.__code__


@either_runs(GATED)
def a_layer_that_compiles_itself(case: Case) -> None:
    case.model.up.compile(backend="eager")


@original_runs(GATED)
def the_compiled_call_of_a_layer(case: Case) -> None:
    """What nn.Module.compile leaves in a module comes before all else."""
    layer = case.model.up
    layer._compiled_call_impl = lambda x: layer.forward(x) * 2
