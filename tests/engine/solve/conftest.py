"""The program of a test module, which it has as TEXT, traced once."""

from __future__ import annotations

import pytest
from mugraph.ir.region import Trace
from mugraph.trace.tracer import trace_file


@pytest.fixture(scope="module")
def trace(request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory) -> Trace:
    path = tmp_path_factory.mktemp("traced") / "model.py"
    path.write_text(request.module.TEXT)
    return trace_file(path)
