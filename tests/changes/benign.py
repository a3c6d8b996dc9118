"""Changes after which the kernels are still right, and must still run: guards that always say no would be of no use."""

from __future__ import annotations

import copy
import gc
import io
import pickle
import sys
from typing import Any

import torch
from torch import nn

from tests.changes.case import ALL, CONVOLVED, GATED, PRODUCT, STACKED, TIED, Case, kernel_runs

MODULES = (GATED, TIED, STACKED, CONVOLVED)


@kernel_runs(*ALL)
def nothing(case: Case) -> None:
    """Without this all the others show nothing."""


@kernel_runs(GATED, CONVOLVED)
def deep_copy(case: Case) -> None:
    case.model = copy.deepcopy(case.model)


@kernel_runs(GATED, STACKED)
def pickled(case: Case) -> None:
    case.model = pickle.loads(pickle.dumps(case.model))


@kernel_runs(GATED)
def another_instance(case: Case) -> None:
    case.model = case.made()
    gc.collect()


@kernel_runs(GATED)
def saved_and_loaded(case: Case) -> None:
    file = io.BytesIO()
    torch.save({name: 2 * tensor for name, tensor in case.model.state_dict().items()}, file)
    file.seek(0)
    case.model.load_state_dict(torch.load(file))


@kernel_runs(GATED)
def loaded_by_assignment(case: Case) -> None:
    case.model.load_state_dict({n: t.clone() + 1 for n, t in case.model.state_dict().items()}, assign=True)


@kernel_runs(GATED)
def an_equal_parameter(case: Case) -> None:
    case.model.up.weight = case.parameter(48, 32)


@kernel_runs(GATED)
def a_parameter_written_in_place(case: Case) -> None:
    with torch.no_grad():
        case.model.down.weight.mul_(3)


@kernel_runs(GATED)
def submodules_swapped(case: Case) -> None:
    case.model.gate, case.model.up = case.model.up, case.model.gate


@kernel_runs(CONVOLVED)
def an_equal_buffer(case: Case) -> None:
    case.model.norm.running_mean = case.randn(8)


@kernel_runs(GATED)
def inference_mode(case: Case) -> Any:
    with torch.inference_mode():
        return case.run_with_grad().clone()


@kernel_runs(GATED)
def inputs_of_inference(case: Case) -> None:
    with torch.inference_mode():
        case.inputs = [case.randn(6, 32)]


@kernel_runs(GATED)
def nothing_requires_grad(case: Case) -> Any:
    case.model.requires_grad_(False)
    return case.run_with_grad()


@kernel_runs(GATED)
def a_hook_that_is_gone(case: Case) -> None:
    hook = case.model.norm.register_forward_hook(lambda module, inputs, output: output * 2)
    hook.remove()


@kernel_runs(GATED, lasting=True)
def a_global_hook_that_is_gone(case: Case) -> None:
    hook = nn.modules.module.register_module_forward_hook(lambda module, inputs, output: output * 2)
    case.run()
    case.launches = 0
    hook.remove()


@kernel_runs(GATED, lasting=True)
def a_function_patched_and_mended(case: Case) -> None:
    parts = sys.modules["gated_parts"]
    silu = parts.F.silu
    parts.F.silu = torch.relu
    case.run()
    case.launches = 0
    parts.F.silu = silu


@kernel_runs(GATED)
def an_attribute_that_nothing_reads(case: Case) -> None:
    case.model.norm.remark = "new"
    case.model.count = 7


@kernel_runs(GATED)
def called_by_keyword(case: Case) -> Any:
    with torch.no_grad():
        return case.model(x=case.inputs[0])


@kernel_runs(GATED)
def in_another_module(case: Case) -> None:
    case.model = nn.Sequential(case.model, nn.Identity())


@kernel_runs(GATED)
def data_parallel_of_one_device(case: Case) -> None:
    case.model = nn.DataParallel(case.model)


@kernel_runs(GATED)
def shared_memory(case: Case) -> None:
    case.model.share_memory()


@kernel_runs(GATED)
def moved_to_where_it_is(case: Case) -> None:
    case.model.to("cpu").to(case.dtype)


@kernel_runs(PRODUCT)
def rows_of_a_larger_tensor(case: Case) -> None:
    """Aligned to 64 bytes, and contiguous."""
    case.inputs[0] = case.randn(10, 32)[2:]


@kernel_runs(PRODUCT)
def strides_of_one_element(case: Case) -> None:
    """A copy with the same strides, made by as_strided."""
    case.inputs[1] = case.inputs[1].clone().as_strided((8, 32), (32, 1))
