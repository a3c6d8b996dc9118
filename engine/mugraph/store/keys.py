"""What a stored result is filed under: everything it depends on, and nothing else."""

from __future__ import annotations

from collections.abc import Mapping
from importlib.metadata import PackageNotFoundError, version

import mugraph
from mugraph.codegen.content import digest
from mugraph.ir.program import TensorProgram
from mugraph.ir.target import Target


def versions() -> dict[str, str]:
    """Versions of mugraph, torch and triton ("none" where there is none); imports neither of them."""
    found = {"mugraph": mugraph.__version__}
    for package in ("torch", "triton"):
        try:
            found[package] = version(package)
        except PackageNotFoundError:
            found[package] = "none"
    return found


def region_key(
    program: TensorProgram,
    target: Target,
    *,
    device: str = "",
    driver: str = "",
    space: str = "",
    with_versions: Mapping[str, str] | None = None,
) -> str:
    """64 hexadecimal digits for the result of optimising `program`.

    program: its axes' sizes, its tensors' shapes, strides and types are part of it; what the user's code calls the
             tensors (`Tensor.source`) is part of it too, because the result's code names them
    device:  the GPU's name; "" where nothing was measured
    driver:  the driver's version; "" where nothing was measured
    space:   the schedule space and the search's limits, as text
    with_versions: of mugraph, torch, triton; those installed when not given
    """
    return digest("region", program, target, device, driver, space, dict(with_versions or versions()))
