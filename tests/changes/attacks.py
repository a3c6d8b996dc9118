"""Changes that deceive who looks at names and equality, or looks once."""

from __future__ import annotations

import builtins
import threading
import types
from typing import Any

import torch
import torch.nn.functional as F
from torch import nn

from tests.changes.case import DECORATED, FILLED, GATED, PRODUCT, STACKED, TIED, Case, either_runs, original_runs
from tests.changes.classes import like, named, parts


class Equal:
    """Says that it is equal to everything; a product with it is nine times the other."""

    __hash__ = None

    def __eq__(self, other: object) -> bool:
        return True

    def __rmul__(self, other: torch.Tensor) -> torch.Tensor:
        return other * 9


@original_runs(GATED, lasting=True)
def a_number_that_says_it_is_equal(case: Case) -> None:
    case.module.RESIDUAL = Equal()


@original_runs(STACKED)
def a_factor_that_says_it_is_equal(case: Case) -> None:
    case.model.factors[1] = Equal()


@original_runs(GATED)
def a_class_that_says_it_is_equal(case: Case) -> None:
    """Its hash is nn.Linear's, too."""

    class Equals(type):
        def __eq__(cls, other: object) -> bool:
            return other is nn.Linear or other is cls

        def __hash__(cls) -> int:
            return hash(nn.Linear)

    class Linear(nn.Linear, metaclass=Equals):
        def forward(self, x: torch.Tensor) -> torch.Tensor:
            return -super().forward(x)

    made = named(Linear, "Linear")
    made.__module__ = nn.Linear.__module__
    case.model.up = like(case.model.up, made)


@original_runs(GATED, lasting=True)
def a_class_in_the_librarys_place(case: Case) -> None:
    """nn.Linear is another class, of the same name and module."""

    class Linear(nn.Linear):
        def forward(self, x: torch.Tensor) -> torch.Tensor:
            return -super().forward(x)

    made = named(Linear, "Linear")
    made.__module__ = nn.Linear.__module__
    case.model.up = like(case.model.up, made)
    nn.Linear = nn.modules.linear.Linear = made


class Alternating(dict[str, Any]):
    """Says yes and no in turn."""

    def __init__(self) -> None:
        super().__init__(residual=True)
        self.readings = 0

    def __getitem__(self, name: str) -> Any:
        self.readings += 1
        return self.readings % 2 == 1


@original_runs(STACKED)
def a_dictionary_that_alternates(case: Case) -> Any:
    case.model.options = Alternating()
    return [case.run(), case.run(), case.run(), case.model.options.readings]


@original_runs(GATED, lasting=True)
def a_parameter_that_alternates(case: Case) -> Any:
    """A property of its class has a parameter's name."""
    read: list[torch.Tensor] = []

    def weight(self: Any) -> torch.Tensor:
        read.append(self._parameters["weight"])
        return read[-1] * len(read)

    parts().RMSNorm.weight = property(weight)
    return [case.run(), case.run(), len(read)]


@original_runs(GATED, lasting=True)
def a_number_that_alternates(case: Case) -> Any:
    """The same for an instance's number: a data descriptor of the class comes first."""
    read: list[float] = []

    def eps(self: Any) -> float:
        read.append(1e-5 if len(read) % 2 == 0 else 0.5)
        return read[-1]

    parts().RMSNorm.eps = property(eps)
    return [case.run(), case.run(), case.run(), len(read)]


@original_runs(GATED, lasting=True)
def a_module_found_by_a_method(case: Case) -> None:
    """Submodules are found by nn.Module.__getattr__."""
    find = nn.Module.__getattr__
    nn.Module.__getattr__ = lambda self, name: find(self, "gate" if name == "up" else name)
    case.model.up.register_forward_hook(lambda module, inputs, output: output * 2)


@original_runs(GATED, PRODUCT, lasting=True)
def what_silu_calls_patched(case: Case) -> None:
    torch._C._nn.silu = torch.relu


@original_runs(GATED, lasting=True)
def the_code_of_silu(case: Case) -> None:
    def silu(input: torch.Tensor, inplace: bool = False) -> torch.Tensor:
        return torch.relu(input)

    F.silu.__code__ = silu.__code__


@original_runs(GATED, lasting=True)
def the_global_that_linear_reads(case: Case) -> None:
    linear = F.linear
    nn.modules.linear.F = types.SimpleNamespace(linear=lambda *given: linear(*given) * 2)


@original_runs(TIED, lasting=True)
def a_default_of_the_librarys(case: Case) -> None:
    """Of F.softmax: what it computes in."""
    F.softmax.__defaults__ = (3, torch.float16)


@original_runs(STACKED, lasting=True)
def a_builtin_hidden_by_a_global(case: Case) -> None:
    case.module.min = lambda *given: 0


@original_runs(STACKED, lasting=True)
def a_builtin_patched(case: Case) -> Any:
    least = builtins.min
    builtins.min = lambda *given: 0 if given == (1, 2) else least(*given)
    try:
        return case.run()
    finally:
        builtins.min = least


@original_runs(FILLED, lasting=True)
def the_module_of_functions_replaced(case: Case) -> None:
    """`torch` is the name of something else in the program's file."""
    case.module.torch = types.SimpleNamespace(ones=torch.zeros, full=torch.full)


@either_runs(DECORATED, lasting=True)
def a_decorator_with_another_number(case: Case) -> None:
    """The wrapper's code and the wrapped function are those that were."""
    case.module.squashed = case.module.scaled(3.0)(case.module.squashed.__wrapped__)


@either_runs(DECORATED, lasting=True)
def a_decorator_around_another_function(case: Case) -> None:
    """`__wrapped__` says what it said, and something else is called."""
    before = case.module.squashed.__wrapped__
    case.module.squashed = case.module.scaled(2.0)(torch.tanh)
    case.module.squashed.__wrapped__ = before


@either_runs(DECORATED, lasting=True)
def a_decorator_less(case: Case) -> None:
    case.module.squashed = case.module.squashed.__wrapped__


@either_runs(DECORATED, lasting=True)
def a_librarys_decorator_around(case: Case) -> None:
    case.module.squashed = torch.autocast("cpu", torch.bfloat16)(case.module.squashed)


@original_runs(GATED)
def in_a_thread_with_gradients(case: Case) -> Any:
    """Another thread wants gradients, whatever this one does."""
    results: list[Any] = []
    with torch.no_grad():
        thread = threading.Thread(target=lambda: results.append(case.run_with_grad()))
        thread.start()
        thread.join()
    return results


@either_runs(GATED)
def in_threads_at_once(case: Case) -> Any:
    results: dict[int, Any] = {}
    threads = [threading.Thread(target=lambda n=n: results.update({n: case.run()})) for n in range(2)]
    models = [case.model, case.made()]
    for thread, model in zip(threads, models, strict=True):
        case.model = model
        thread.start()
        thread.join()
    return [results[0], results[1]]


@either_runs(GATED)
def many_classes(case: Case) -> Any:
    """Each made anew, met once and gone; the model at the end is as it was."""
    norm = case.model.norm
    with torch.no_grad():
        for _ in range(1100):
            case.model.norm = like(norm, type("RMSNorm", (parts().RMSNorm,), {}))
            case.model.norm.offset = 1.0
            case.model.norm.offset = 0.0
    case.model.norm = norm


@original_runs(PRODUCT)
def a_function_called_with_others(case: Case) -> Any:
    """Its arguments in another order, by their names."""
    x, y, w = case.inputs
    with torch.no_grad():
        return case.model(w=w, y=x[:4], x=y[:4])
