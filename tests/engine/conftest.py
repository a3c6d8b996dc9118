"""What tests of several rooms take."""

from __future__ import annotations

from dataclasses import replace

import pytest
from mugraph.ops.algebra.registry import entries


@pytest.fixture(autouse=True)
def _forked(forks: None) -> None:
    """Files are traced, and kernels run in Triton's interpreter, in forks; a test may ask for whole processes."""


@pytest.fixture
def a_cast_is_nothing(monkeypatch: pytest.MonkeyPatch) -> None:
    """As it was once: what is cast to a truth value is taken for the number itself."""
    monkeypatch.setitem(entries(), "Tensor.to", replace(entries()["Tensor.to"], truth=True))
