"""What tests of several pre-defined kernels share."""

from __future__ import annotations

from collections.abc import Iterator

import pytest
from mugraph.verification.float_test import FloatTester


@pytest.fixture(scope="module")
def tester() -> Iterator[FloatTester]:
    with FloatTester() as tester:
        yield tester
