"""Names in generated files: of the kernel module, its alias in the user's file, parameters, operators."""

from __future__ import annotations

import re
from pathlib import Path

from mugraph.ir.content import digest
from mugraph.ir.kernel import KernelSource
from mugraph.ir.names import identifier
from mugraph.ir.numbers import called
from mugraph.plans.plan import RegionPlan

ALIAS = "mugraph_kernels"
"""What a kernel module is called inside the user's file (`mugraph_kernels_2` for a second one). In a file with
`from x import *` it is `_mugraph_kernels`: the other file may have kernels too, and stars leave such names out."""
IS_ALIAS = re.compile(rf"_?{ALIAS}(_\d+)?")


def parameter_name(expression: str) -> str:
    """The parameter for a live-in: `x` for "x", `norm_weight` for "self.norm.weight"."""
    return identifier(called(expression).removeprefix("self."))


def module_name(path: Path, number: int = 1) -> str:
    """The kernel module of a source file: "model_mugraph", then "model_mugraph_2" for a later edit of the same file.

    A stem that cannot be imported ("1_Square_matmul") is made an identifier first.
    """
    return f"{identifier(path.stem)}_mugraph" + (f"_{number}" if number > 1 else "")


def mugraph_id(plan: RegionPlan) -> str:
    """Ten hexadecimal digits that identify a region's code, its guards and its μGraph."""
    region = plan.region
    guards = tuple(re.sub(r"_here\['(\w+)'\]", r"\1", guard) for guard in region.guards)  # however a name is read
    return digest(plan.name, region.text, guards, plan.mugraph, length=10)


def operator_name(kernel: KernelSource, original_path: Path) -> str:
    """The kernel's name in PyTorch's registry, "mugraph::rms_norm_linear_3fa9c21b04".

    The hash keeps two kernels that differ in anything apart in one process.
    """
    return f"mugraph::{kernel.name}_{digest(original_path.name, kernel, length=10)}"
