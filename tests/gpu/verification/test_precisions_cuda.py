"""Products of float32 on a GPU: in each precision that a schedule may have they pass the float test, and as they are
computed for 16-bit numbers they do not."""

from __future__ import annotations

import pytest
from mugraph.ir.block import PRECISIONS, TF32
from mugraph.verification.float_test import FloatTester

from tests.engine.verification.float_programs import NORM, norm

pytestmark = pytest.mark.gpu

CALL = "tl.dot(xg, w, acc)"


@pytest.mark.parametrize("precision", [precision for precision in PRECISIONS if precision != TF32])
def test_all_keep_the_digits(precision: str) -> None:
    assert CALL in NORM
    with FloatTester("cuda", timeout_s=60) as tester:
        result = norm(tester, NORM.replace(CALL, f'tl.dot(xg, w, acc, input_precision="{precision}")'), "f32")
        assert result.passed, result.reason
        rough = norm(tester, NORM.replace(CALL, 'tl.dot(xg, w, acc, input_precision="tf32")'), "f32")
        assert not rough.passed
