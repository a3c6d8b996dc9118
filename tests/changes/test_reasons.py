"""Why a kernel was not taken, as `mugraph check --run` says it, after changes to the program."""

from __future__ import annotations

import json
from pathlib import Path
from subprocess import DEVNULL, PIPE

import pytest

from tests.changes.case import GATED, all_changes
from tests.changes.conftest import Applied
from tests.support.forks import Fork, ForkServer

CHILD = Path(__file__).parent / "reasons_child.py"
WHY = {
    "nothing-gated": "taken",
    "a_forward_hook-gated": "self.norm is no RMSNorm as analysed: a forward hook is on it",
    "a_hook_before_forward": "self.up is no Linear as analysed: a hook is called before its forward",
    "a_hook_for_all_modules": "a hook for all modules is registered",
    "gradients_wanted": "a gradient is wanted",
    "a_parametrization": "self.up is a ParametrizedLinear, the kernel is for a Linear",
    "a_layer_without_a_size_yet": "self.up is a LazyLinear, the kernel is for a Linear",
    "lora_by_a_method": "self.up is no Linear as analysed: it has its own forward",
    "a_class_in_the_librarys_place": "self.gate is no Linear as analysed: its code is another",
    "autocast-gated": "autocast is on",
    "a_mode_of_functions-gated": "a mode is at work that sees each function (Twice)",
    "another_number_of_rows-gated": "x has 5 rows, the kernel is for 6",
    "a_dimension_more": "x has shape (1, 6, 32), the kernel is for (6, 32)",
    "called_with_a_parameter_of_another_size": "self.gate.weight has 40 rows, the kernel is for 48",
    "a_weight_with_exchanged_strides": "self.up.weight has strides (1, 48), the kernel is for (32, 1)",
    "whole_numbers": "x is int64, the kernel is for float32",
    "a_subclass_as_input": "x is a Doubling, no plain tensor",
    "negated_lazily-gated": "x is a view that is still to be negated",
    "what_silu_calls_patched-gated": "torch._C._nn.silu is not what it was",
    "a_helpers_file_edited": "gate is not the code as analysed: its code is another",
    "a_number_edited": "RESIDUAL is 0.125, the kernel is for 0.5",
    "a_number_that_says_it_is_equal": "RESIDUAL is an Equal, the kernel is for a float",
    "imported_by_two_names": "project in gated.py is something else than it was",
    "traced": "torch.jit traces it",
}
"""A way in which a program is changed -> what is said then."""
OF_SIZES = {"another_number_of_rows-gated", "called_with_a_parameter_of_another_size"}
"""Those that change sizes and nothing else."""


@pytest.fixture(scope="module")
def reasons(applied: Applied, interpreting: ForkServer) -> dict[str, tuple[dict[str, int], int]]:
    child = Fork(interpreting, str(CHILD), [str(applied(GATED)), *WHY], stdout=PIPE, stderr=DEVNULL)
    assert child.stdout is not None
    return {name: (why, of_sizes) for name, why, of_sizes in map(json.loads, child.stdout)}


@pytest.mark.parametrize("change", WHY)
def test_why(change: str, reasons: dict[str, tuple[dict[str, int], int]]) -> None:
    assert all_changes()[change].program is GATED
    why, of_sizes = reasons[change]
    assert list(why) == [WHY[change]]
    assert of_sizes == (sum(why.values()) if change in OF_SIZES else 0)
