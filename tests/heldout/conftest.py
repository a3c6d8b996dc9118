"""Searches that end by their work, however busy the machine; files are traced, and kernels run in Triton's interpreter,
in forks."""

import pytest

from tests.support.clock import Clock


@pytest.fixture(autouse=True)
def _for_all_of_them(clock: Clock, forks: None) -> None:
    pass
