"""Programs written to a temporary folder and traced there."""

from __future__ import annotations

import textwrap
from collections.abc import Callable
from pathlib import Path

import pytest
from mugraph.ir.region import Region, Trace
from mugraph.trace.tracer import trace_file

PRELUDE = "import torch\nimport torch.nn.functional as F\nfrom torch import nn\n\n\n"


@pytest.fixture
def trace(tmp_path: Path) -> Callable[..., Trace]:
    """trace(source, **options): the trace of a program; torch, F and nn are imported for it."""

    def run(source: str, **options: object) -> Trace:
        path = tmp_path / "program.py"
        path.write_text(PRELUDE + textwrap.dedent(source), encoding="utf-8")
        return trace_file(path, **options)  # type: ignore[arg-type]

    return run


@pytest.fixture
def regions(trace: Callable[..., Trace]) -> Callable[..., list[Region]]:
    """regions(source): those to be searched, each found equal to the original on real tensors."""

    def run(source: str, **options: object) -> list[Region]:
        found = trace(source, check=True, **options)
        assert found.errors == ()
        return [region for region in found.regions if region.status is None]

    return run
