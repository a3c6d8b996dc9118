"""The float test tells right kernels, whatever their order and form, from wrong ones, whose faults ordinary numbers
hide: each kernel is plain PyTorch (launchers)."""

from __future__ import annotations

from collections.abc import Iterator

import pytest
from mugraph.verification.float_results import FloatResult
from mugraph.verification.float_test import FloatTester

from tests.engine.verification.launchers import FAMILIES

RIGHT = [(family, name) for family, found in FAMILIES.items() for name in found.right]
WRONG = [(family, name) for family, found in FAMILIES.items() for name in found.wrong]


@pytest.fixture(scope="module")
def tester() -> Iterator[FloatTester]:
    with FloatTester(timeout_s=120) as tester:
        yield tester


def result_of(tester: FloatTester, family: str, body: str) -> FloatResult:
    found = FAMILIES[family]
    program = found.program()
    outputs = [tensor.name for tensor in program.outputs.values()]
    return tester.test(found.module(body), "launch", program, list(found.shapes), outputs)


@pytest.mark.parametrize(("family", "name"), RIGHT)
def test_right_ones_pass(tester: FloatTester, family: str, name: str) -> None:
    result = result_of(tester, family, FAMILIES[family].right[name])
    assert result.passed, result.reason


@pytest.mark.parametrize(("family", "name"), WRONG)
def test_wrong_ones_do_not(tester: FloatTester, family: str, name: str) -> None:
    result = result_of(tester, family, FAMILIES[family].wrong[name])
    assert not result.passed
    assert any(told in (result.reason or "") for told in ("is wrong", "NaN or infinity")), result.reason
