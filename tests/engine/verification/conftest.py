"""Kernels run in Triton's interpreter in forks."""

import pytest


@pytest.fixture(autouse=True)
def _forked(forks: None) -> None:
    """For all of them but those that ask for a whole process."""
