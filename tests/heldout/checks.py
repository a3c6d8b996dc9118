"""What is checked of a program's kernels and of its edited file."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

from mugraph.edit.apply import apply_files
from mugraph.edit.revert import revert_file
from mugraph.events import FileResult
from mugraph.pipeline import improved

from tests.support.forks import run_interpreted

CHILD = Path(__file__).parent / "run_child.py"


SLACK = 2.0
"""Roundings in its type that a kernel may add to the original's: PyTorch's attention on a CPU keeps more in float32."""
SMALLEST = 1e-6
"""An error that is rounding in any order of float32 additions."""
TF32 = 2.0**-11
"""The rounding of operands where the program lets products be computed so; PyTorch does not on a CPU."""
FEW = 0.002
"""Of numbers of eight bits, a part that roundings before make others of."""


def check_edit(path: Path, source: bytes, result: FileResult) -> None:
    """What a user gets: the improved regions written, and taken out again to the byte."""
    plans, sources, speeds = improved(result.regions)
    if not plans:
        return
    written = apply_files(path, plans, sources, target=result.device.target, speeds=speeds)
    assert path.read_bytes() != source
    reverted = revert_file(path)
    assert reverted.regions == len(plans)
    assert path.read_bytes() == source
    assert not written.module.exists()


def check_kernels(path: Path, source: bytes, result: FileResult) -> None:
    """Every kernel found, also those that are not expected to be faster, in its place in the program."""
    found = [region for region in result.regions if region.plan is not None]
    if not found:
        return
    plans = [region.plan for region in found if region.plan is not None]
    sources = {name: kernel for region in found for name, kernel in region.sources.items()}
    original = path.with_name("original.py")
    original.write_bytes(source)
    written = apply_files(path, plans, sources, target=result.device.target)
    rounds = TF32 if any('input_precision="tf32"' in kernel.jit for kernel in sources.values()) else 0.0
    launched: set[str] = set()
    for name, ran in child(original, path, written.module).items():
        assert ran["same"], f"{name}: without its kernel it is not the original"
        assert ran["shape"], name
        assert ran["strides"], name
        allowed = max(3 * ran["eager"], SLACK * max(ran["rounding"], rounds), SMALLEST)
        assert ran["error"] <= allowed, f"{name}: {ran}"
        assert ran["codes"] <= 3 * ran["eager_codes"] + FEW, f"{name}: {ran}"
        launched.update(ran["launches"])
    kernels = {f"launch_{kernel.name}" for plan in plans for kernel in plan.mugraph.kernels if kernel.name in sources}
    assert launched == kernels, (launched, kernels)
    revert_file(path)
    assert path.read_bytes() == source


def child(original: Path, edited: Path, module: Path) -> dict[str, Any]:
    return json.loads(run_interpreted(CHILD, str(original), str(edited), str(module)))
