"""Changes of how PyTorch runs: modes, transforms, flags, types and devices by default."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import torch
from torch.overrides import TorchFunctionMode
from torch.utils._python_dispatch import TorchDispatchMode
from torch.utils.flop_counter import FlopCounterMode

from tests.changes.case import CONVOLVED, FILLED, GATED, PRODUCT, TIED, Case, either_runs, original_runs


@original_runs(GATED, PRODUCT)
def autocast(case: Case) -> Any:
    with torch.autocast("cpu", torch.bfloat16):
        return case.run()


@either_runs(GATED)
def autocast_of_another_device(case: Case) -> Any:
    with torch.autocast("cuda", torch.float16):
        return case.run()


@either_runs(GATED)
def autocast_turned_off(case: Case) -> Any:
    with torch.autocast("cpu", torch.bfloat16), torch.autocast("cpu", enabled=False):
        return case.run()


@original_runs(FILLED, lasting=True)
def the_type_by_default(case: Case) -> None:
    torch.set_default_dtype(torch.float64)


@original_runs(FILLED, lasting=True)
def the_type_by_default_is_smaller(case: Case) -> None:
    torch.set_default_dtype(torch.float16)


@original_runs(FILLED, lasting=True)
def the_device_by_default(case: Case) -> None:
    torch.set_default_device("meta")


@original_runs(FILLED)
def a_device_for_a_while(case: Case) -> Any:
    with torch.device("meta"):
        return case.run()


class Twice(TorchFunctionMode):
    """Results of one function are doubled."""

    def __init__(self, name: str) -> None:
        super().__init__()
        self.name = name

    def __torch_function__(self, func: Any, types: Any, args: Sequence[Any] = (), kwargs: Any = None) -> Any:
        result = func(*args, **(kwargs or {}))
        return 2 * result if getattr(func, "__name__", "") == self.name else result


@original_runs(GATED, PRODUCT)
def a_mode_of_functions(case: Case) -> Any:
    with Twice("silu"):
        return case.run()


@original_runs(TIED)
def a_mode_of_functions_of_the_library(case: Case) -> Any:
    with Twice("layer_norm"):
        return case.run()


@original_runs(FILLED)
def a_mode_of_functions_without_tensors(case: Case) -> Any:
    with Twice("ones"):
        return case.run()


class Negated(TorchDispatchMode):
    """Results of matrix products are negated."""

    def __torch_dispatch__(self, func: Any, types: Any, args: Sequence[Any] = (), kwargs: Any = None) -> Any:
        result = func(*args, **(kwargs or {}))
        return -result if func in (torch.ops.aten.mm.default, torch.ops.aten.convolution.default) else result


@original_runs(GATED, CONVOLVED)
def a_mode_of_operators(case: Case) -> Any:
    with Negated():
        return case.run()


@original_runs(TIED)
def operations_counted(case: Case) -> Any:
    with FlopCounterMode(display=False) as counter:
        result = case.run()
    return [result, counter.get_total_flops()]


@either_runs(GATED, lasting=True)
def deterministic(case: Case) -> None:
    torch.use_deterministic_algorithms(True)


@either_runs(GATED, lasting=True)
def matrix_products_less_exact(case: Case) -> None:
    torch.set_float32_matmul_precision("medium")


@either_runs(GATED)
def anomalies_looked_for(case: Case) -> Any:
    with torch.autograd.set_detect_anomaly(True):
        return case.run()


@either_runs(GATED)
def profiled(case: Case) -> Any:
    with torch.profiler.profile(activities=[torch.profiler.ProfilerActivity.CPU]):
        return case.run()


@original_runs(CONVOLVED)
def training(case: Case) -> Any:
    case.model.train()
    return [case.run(), *case.model.buffers()]


@original_runs(CONVOLVED)
def training_of_a_submodule(case: Case) -> None:
    case.model.drop.train()


@original_runs(CONVOLVED)
def training_by_the_attribute(case: Case) -> None:
    case.model.drop.training = True


@original_runs(CONVOLVED)
def training_of_the_norm(case: Case) -> Any:
    case.model.norm.train()
    return [case.run(), *case.model.buffers()]


@either_runs(GATED)
def training_without_meaning(case: Case) -> None:
    case.model.train()
