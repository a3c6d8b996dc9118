"""Losses over the classes of a linear layer: no kernel stores the logits, however the loss is written.

Each program goes the whole way, as in test_heldout.py: its kernels run in Triton's interpreter in its edited file.
"""

from __future__ import annotations

from collections.abc import Iterator
from math import prod
from pathlib import Path

import pytest
from mugraph.events import Done, FileResult
from mugraph.pipeline import Options, run
from mugraph.plans.plan import RegionPlan

from tests.heldout.checks import check_edit, check_kernels
from tests.support.clock import FILE_S

FOLDER = Path(__file__).parent / "linear_losses"
LOGITS = {
    "token_loss": 48 * 3072,
    "smoothed": 48 * 8192,
    "tied": 24 * 6400,
    "capped": 48 * 2560,
    "by_hand": 64 * 1536,
    "contrast": 32 * 2000,
    "with_z_loss": 32 * 4096,
    "odd_vocabulary": 20 * 4623,
}
"""Rows times classes."""
LONG = LOGITS.keys() - {"by_hand", "odd_vocabulary"}
BUDGET_S = 1.5


def optimized(path: Path) -> FileResult:
    options = Options(target="h100", budget_s=BUDGET_S, file_budget_s=FILE_S, measure=False, compare_with="code")
    for event in run(path, options=options):
        if isinstance(event, Done):
            return event.result
    raise AssertionError("the pipeline ended without a result")


def stored(plan: RegionPlan) -> Iterator[int]:
    """Elements of each tensor that a kernel writes: what kernels hand to one another, and outputs."""
    graph = plan.mugraph
    read = {tensor.name for tensor in graph.tensors if tensor.name in graph.inputs}
    for tensor in graph.tensors:
        if tensor.name not in read:
            yield prod(tensor.shape(graph.sizes))


def test_all_programs_are_listed() -> None:
    assert {path.stem for path in FOLDER.glob("*.py")} == LOGITS.keys()


@pytest.mark.parametrize(
    "name", [pytest.param(name, marks=[pytest.mark.more] if name in LONG else []) for name in LOGITS]
)
def test_no_kernel_stores_the_logits(name: str, tmp_path: Path) -> None:
    path = tmp_path / f"{name}.py"
    source = (FOLDER / path.name).read_bytes()
    path.write_bytes(source)
    result = optimized(path)
    assert result.errors == ()
    (region,) = result.regions
    assert region.reason is None
    assert region.plan is not None
    sizes = list(stored(region.plan))
    assert sizes
    assert max(sizes) * 4 <= LOGITS[name], sizes
    check_edit(path, source, result)
    check_kernels(path, source, result)
