"""Samples: each is searched once for all tests; they are traced, and kernels run in Triton's interpreter, in forks."""

from __future__ import annotations

from pathlib import Path

import pytest
from mugraph.events import FileResult

from tests.samples.applied import FILES, AppliedSample, applied
from tests.support.searched import TARGET, Searched


@pytest.fixture(autouse=True)
def _forked(forks: None) -> None:
    """For all of them."""


@pytest.fixture(scope="session", params=FILES, ids=lambda path: path.stem)
def result(request: pytest.FixtureRequest, searched: Searched) -> FileResult:
    """What is found in a sample."""
    return searched(request.param)


@pytest.fixture(scope="session")
def sample(result: FileResult, tmp_path_factory: pytest.TempPathFactory) -> AppliedSample:
    return applied(result, TARGET, tmp_path_factory.mktemp(Path(result.path).stem))
