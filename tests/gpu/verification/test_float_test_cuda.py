"""The float test on a GPU: right kernels pass, spoiled ones fail, an illegal access costs one answer."""

from __future__ import annotations

import pytest
import torch
from mugraph.ir.tensors import DType
from mugraph.verification.float_test import FloatTester

from tests.engine.verification.float_programs import NORM, norm, softmax
from tests.engine.verification.float_programs import SOFTMAX as ATTENTION_TEXT

pytestmark = pytest.mark.gpu


@pytest.mark.parametrize("dtype", ["f16", "bf16"])
def test_right_kernels_pass(dtype: DType) -> None:
    with FloatTester("cuda", timeout_s=60) as tester:
        for result in (norm(tester, NORM, dtype), softmax(tester, ATTENTION_TEXT, dtype)):
            assert result.passed, result.reason
            assert result.device not in (None, "interpreter")


def test_spoiled_kernels_fail_and_the_process_recovers() -> None:
    with FloatTester("cuda", timeout_s=60) as tester:
        assert not norm(tester, NORM.replace("acc = tl.dot(xg, w, acc)", "acc = tl.dot(xg, w)")).passed
        assert not norm(tester, NORM.replace("x_ptr + offs_b", "x_ptr + 1099511627776 + offs_b")).passed
        assert norm(tester, NORM).passed


def test_a_release_gives_memory_back_and_keeps_the_process() -> None:
    with FloatTester("cuda", timeout_s=60) as tester:
        assert norm(tester, NORM).passed
        pid, free = tester.pid, torch.cuda.mem_get_info()[0]
        tester.release()
        assert torch.cuda.mem_get_info()[0] >= free
        assert norm(tester, NORM).passed
        assert tester.pid == pid
