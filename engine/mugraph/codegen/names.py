"""Names in generated files: of the kernel module, its alias in the user's file, parameters and values."""

from __future__ import annotations

import builtins
import keyword
import re
from collections.abc import Iterable
from pathlib import Path

from mugraph.codegen.content import digest
from mugraph.codegen.kernel import KernelSource
from mugraph.codegen.plan import RegionPlan

ALIAS = "mugraph_kernels"
"""What a kernel module is called inside the user's file (`mugraph_kernels_2` for a second one)."""

RESERVED = frozenset({*keyword.kwlist, *keyword.softkwlist, *dir(builtins), "torch", "triton", "tl", "self"})


def identifier(text: str) -> str:
    """`text` as a Python identifier: other characters become underscores, and a leading digit gets one before it."""
    name = re.sub(r"\W+", "_", text).strip("_") or "value"
    return f"_{name}" if name[0].isdigit() else name


class Scope:
    """Hands out names that are unique, no keywords, no builtins and none of `taken`."""

    def __init__(self, taken: Iterable[str] = ()) -> None:
        self._taken = set(taken) | RESERVED

    def unique(self, wanted: str) -> str:
        base = identifier(wanted)
        name, number = base, 2
        while name in self._taken:
            name, number = f"{base}_{number}", number + 1
        self._taken.add(name)
        return name


def parameter_name(expression: str) -> str:
    """The parameter for a live-in: `x` for "x", `norm_weight` for "self.norm.weight"."""
    return identifier(expression.removeprefix("self."))


def module_name(path: Path, number: int = 1) -> str:
    """The kernel module of a source file: "model_mugraph", then "model_mugraph_2" for a later edit of the same file.

    A stem that cannot be imported ("1_Square_matmul") is made an identifier first.
    """
    return f"{identifier(path.stem)}_mugraph" + (f"_{number}" if number > 1 else "")


def mugraph_id(plan: RegionPlan) -> str:
    """Ten hexadecimal digits that name what is computed and how: the region's code, its guards and its μGraph."""
    region = plan.region
    return digest(plan.name, region.text, region.guards, plan.mugraph, length=10)


def operator_name(kernel: KernelSource, original_path: Path) -> str:
    """The kernel's name in PyTorch's registry, "mugraph::rms_norm_linear_3fa9c21b04".

    The hash keeps two kernels that differ in anything apart in one process.
    """
    return f"mugraph::{kernel.name}_{digest(original_path.name, kernel, length=10)}"
