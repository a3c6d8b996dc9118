"""A sample of the random einsum programs, the whole way: traced from their source, searched, written into a copy of it,
and run there in Triton's interpreter beside PyTorch's float64."""

from __future__ import annotations

from pathlib import Path

import pytest
from mugraph.events import Done, FileResult
from mugraph.pipeline import Options, run

from tests.engine.search.einsum_programs import EinsumProgram, chunks, programs
from tests.heldout.checks import check_edit, check_kernels
from tests.support.clock import FILE_S

CHUNKS, PER_CHUNK = 4, 11
BUDGET_S = 0.5
FIRST = 2
"""Chunks that are always tried."""
HEADER = "import torch\nimport torch.nn.functional as F\n"


def sample(chunk: int) -> tuple[EinsumProgram, ...]:
    """Some of those in which one input has several uses, far from one another in the list."""
    several = [program for program in programs(2000) if len(program.body) > 1 and len(program.inputs) < 3]
    step = len(several) // (CHUNKS * PER_CHUNK)
    return tuple(several[chunk * step :: CHUNKS * step][:PER_CHUNK])


def optimized(path: Path) -> FileResult:
    for event in run(path, options=Options(target="h100", budget_s=BUDGET_S, file_budget_s=FILE_S, measure=False)):
        if isinstance(event, Done):
            return event.result
    raise AssertionError("the pipeline ended without a result")


@pytest.mark.parametrize("chunk", chunks(CHUNKS, FIRST))
def test_sample(chunk: int, tmp_path: Path) -> None:
    source = "\n\n".join([HEADER, *(program.source for program in sample(chunk))]).encode()
    path = tmp_path / "einsums.py"
    path.write_bytes(source)
    result = optimized(path)
    assert result.errors == ()
    kernels = 0
    for region in result.regions:
        said = f"{region.region.text}: {region.reason}"
        assert region.status in ("improved", "no-gain", "unsupported"), said
        for unit in region.units:
            assert not any("float" in reason or "interpreter" in reason for reason in unit.rejected), unit.rejected
            kernels += unit.solution is not None
    assert kernels >= PER_CHUNK * 0.7
    check_edit(path, source, result)
    check_kernels(path, source, result)
