"""Changes made to a compiled, scripted, traced or exported program; each is compiled before the change."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import torch
import torch.nn.functional as F
from torch import fx, nn
from torch.fx.experimental.proxy_tensor import make_fx

from tests.changes.case import CONVOLVED, FILLED, GATED, PRODUCT, TIED, Case, either_runs, original_runs
from tests.changes.hooks import Thrice, doubled, gradients, parametrize


def compiled(case: Case, change: Callable[[], Any], backend: str = "eager") -> Any:
    """The results of the compiled program after the change, when it has run without."""
    case.model = torch.compile(case.model, backend=backend)
    case.run()
    change()
    case.launches = 0
    return case.run()


@either_runs(GATED, CONVOLVED)
def compiled_only(case: Case) -> Any:
    return compiled(case, lambda: None)


@either_runs(GATED)
def compiled_with_functions_only(case: Case) -> Any:
    return compiled(case, lambda: None, "aot_eager")


@original_runs(GATED)
def compiled_and_a_global_changed(case: Case) -> Any:
    return compiled(case, lambda: setattr(case.module, "RESIDUAL", 0.25))


@original_runs(GATED)
def compiled_and_a_class_attribute_changed(case: Case) -> Any:
    return compiled(case, lambda: setattr(type(case.model._orig_mod), "scale", 4.0))


@original_runs(GATED)
def compiled_and_a_layer_replaced(case: Case) -> Any:
    return compiled(case, lambda: setattr(case.model._orig_mod, "norm", nn.Identity()))


@original_runs(GATED)
def compiled_and_a_bias_added(case: Case) -> Any:
    return compiled(case, lambda: setattr(case.model._orig_mod.up, "bias", case.parameter(48)))


@original_runs(TIED)
def compiled_and_untied(case: Case) -> Any:
    return compiled(case, lambda: setattr(case.model._orig_mod.second, "weight", case.parameter(16, 32)))


@original_runs(GATED, lasting=True)
def compiled_and_a_function_patched(case: Case) -> Any:
    return compiled(case, lambda: setattr(F, "silu", F.relu))


@original_runs(GATED)
def compiled_and_gradients_wanted(case: Case) -> Any:
    case.model = torch.compile(case.model, backend="eager")
    case.run()
    case.launches = 0
    return gradients(case)


@original_runs(GATED)
def a_hook_and_compiled(case: Case) -> Any:
    case.model.norm.register_forward_hook(doubled)
    return compiled(case, lambda: None)


@original_runs(GATED)
def a_forward_on_an_instance_and_compiled(case: Case) -> Any:
    forward = case.model.down.forward
    case.model.down.forward = lambda x: forward(x) - 1
    return compiled(case, lambda: None)


@original_runs(GATED)
def a_parametrization_and_compiled(case: Case) -> Any:
    parametrize.register_parametrization(case.model.up, "weight", Thrice())
    return compiled(case, lambda: None)


@original_runs(FILLED, lasting=True)
def the_type_by_default_and_compiled(case: Case) -> Any:
    torch.set_default_dtype(torch.float64)
    return compiled(case, lambda: None)


@original_runs(GATED)
def compiled_for_another_number_of_rows(case: Case) -> Any:
    return compiled(case, lambda: setattr(case, "inputs", [case.randn(9, 32)]))


@either_runs(GATED)
def a_compiled_layer(case: Case) -> None:
    case.model.up = torch.compile(case.model.up, backend="eager")


@original_runs(GATED)
def a_scripted_layer(case: Case) -> None:
    case.model.up = torch.jit.script(case.model.up)


@original_runs(PRODUCT, TIED)
def scripted(case: Case) -> Any:
    case.model = torch.jit.script(case.model)


@original_runs(GATED)
def traced(case: Case) -> Any:
    """What is recorded must be the original's operators: it may be run without this library, and with other shapes."""
    with torch.no_grad():
        made = torch.jit.trace(case.model, tuple(case.inputs), check_trace=False)
        kinds = sorted({node.kind() for node in made.inlined_graph.nodes() if node.kind().startswith("mugraph")})
        return [made(*(2 * one for one in case.inputs)), kinds]


@original_runs(GATED)
def traced_symbolically(case: Case) -> Any:
    made = fx.symbolic_trace(case.model)
    called = [getattr(node.target, "__name__", node.target) for node in made.graph.nodes if node.op.startswith("call")]
    with torch.no_grad():
        return [made(*case.inputs), called]


@either_runs(GATED)
def traced_by_its_operators(case: Case) -> Any:
    with torch.no_grad():
        made = make_fx(case.model)(*case.inputs)
        return made(*(2 * one for one in case.inputs))


@either_runs(GATED)
def exported(case: Case) -> Any:
    with torch.no_grad():
        made = torch.export.export(case.model, tuple(case.inputs)).module()
        return made(*(2 * one for one in case.inputs))


@original_runs(GATED)
def changed_and_exported(case: Case) -> Any:
    case.module.RESIDUAL = 0.25
    with torch.no_grad():
        made = torch.export.export(case.model, tuple(case.inputs)).module()
        return made(*(2 * one for one in case.inputs))


@original_runs(GATED)
def exported_for_any_number_of_rows(case: Case) -> Any:
    with torch.no_grad():
        rows = torch.export.Dim("rows", min=2, max=64)
        made = torch.export.export(case.model, tuple(case.inputs), dynamic_shapes=({0: rows},)).module()
        return [made(case.inputs[0]), made(case.randn(11, 32))]
