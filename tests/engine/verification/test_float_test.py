"""The float test accepts right kernels in every type and rejects spoiled ones, each for its own reason."""

from __future__ import annotations

import json
import math
from collections.abc import Iterator
from typing import Any

import pytest
import torch
from mugraph.ir.tensors import DType
from mugraph.verification.beside_exact import units_apart
from mugraph.verification.float_test import FloatTester

from tests.engine.verification.float_programs import NORM, SOFTMAX, norm, softmax
from tests.engine.verification.kernels import SOFTMAX_ROWS
from tests.engine.verification.launchers import FAMILIES


@pytest.mark.parametrize("dtype", ["f16", "bf16", "f32"])
def test_right_kernels_pass(tester: FloatTester, dtype: DType) -> None:
    kinds = ["normal", "rows", "cancellation", "ends"]
    more = (["subnormal"] if dtype == "f16" else []) + ["NaN", "infinite"]
    for result, own in ((norm(tester, NORM, dtype), []), (softmax(tester, SOFTMAX, dtype), ["large logits"])):
        assert result.passed, result.reason
        assert [one.name for one in result.scenarios] == [*kinds, *own, *more]
        assert result.device == "interpreter"
        assert result.max_rel_error is not None
        assert 0 < result.max_rel_error < 0.1
        assert result.eager_rel_error


@pytest.mark.parametrize(
    ("old", "new", "told"),
    [
        ("tl.sqrt(ss", "tl.sqrt(1.01 * ss", "is wrong by"),
        ("+ 1e-6", "+ 1e-1", "is wrong by"),
        ("acc = tl.dot(xg, w, acc)", "acc = tl.dot(xg, w)", "is wrong by"),
        ("acc = tl.dot(xg, w, acc)", "acc = tl.dot(xg, w, acc).to(tl.bfloat16).to(tl.float32)", "is wrong by"),
        ("mask=mask_x, other=0.0", "", "NaN or infinity"),
        ("triton.cdiv(72, 32)", "72 // 32", "NaN or infinity"),
        ("    return z", "    x.zero_()\n    return z", "writes to its inputs"),
        ("    return z", "    z += torch.rand(())\n    return z", "different results"),
        ("    return z", "    return z.float()", "type"),
        ("    return z", "    return z, z", "returns 2"),
        ("    return z", "    return zz", "failed: NameError"),
    ],
)
def test_spoiled_kernels_fail(tester: FloatTester, old: str, new: str, told: str) -> None:
    assert old in NORM
    result = norm(tester, NORM.replace(old, new))
    assert not result.passed
    assert told in (result.reason or "")


def test_a_kernel_returns_all_of_a_program(tester: FloatTester) -> None:
    program = FAMILIES["softmax f32"].program()
    result = tester.test(SOFTMAX_ROWS, "launch_softmax_rows", program, ["x"], [])
    (output,) = program.outputs.values()
    assert not result.passed
    assert result.reason == f"the launcher does not return {output.name} (normal inputs)"


@pytest.fixture(scope="module")
def tester() -> Iterator[FloatTester]:
    with FloatTester(timeout_s=120) as tester:
        yield tester


def test_softmax_without_a_running_maximum_overflows(tester: FloatTester) -> None:
    text = SOFTMAX.replace("m_new = tl.maximum(m, tl.max(s, axis=1))", "m_new = tl.zeros_like(m)")
    text = text.replace('tl.full((BLOCK_M,), float("-inf"), tl.float32)', "tl.zeros((BLOCK_M,), tl.float32)")
    result = softmax(tester, text)
    assert not result.passed
    assert "NaN or infinity" in (result.reason or "")


@pytest.mark.parametrize("dtype", ["f16", "bf16", "f32"])
def test_a_softmax_of_rows_is_right(tester: FloatTester, dtype: DType) -> None:
    """In bfloat16 too, whose conversions Triton's interpreter cuts off by itself."""
    program = FAMILIES[f"softmax {dtype}"].program()
    outputs = [tensor.name for tensor in program.outputs.values()]
    result = tester.test(SOFTMAX_ROWS, "launch_softmax_rows", program, ["x"], outputs)
    assert result.passed, result.reason
    for old, new in (("tl.max(x)", "tl.maximum(tl.max(x), 0.0)"), ("e / tl.sum(e)", "1.001 * e / tl.sum(e)")):
        wrong = tester.test(SOFTMAX_ROWS.replace(old, new), "launch_softmax_rows", program, ["x"], outputs)
        assert not wrong.passed


@pytest.mark.usefixtures("whole_process")
def test_a_crash_and_a_hang_cost_one_answer_each() -> None:
    with FloatTester(timeout_s=3) as tester:
        assert norm(tester, NORM).passed
        died = norm(tester, NORM.replace("    return z", "    import os\n    os.kill(os.getpid(), 11)"))
        assert died.reason == "the process running the kernel died: signal 11"
        assert norm(tester, NORM).passed
        hung = norm(tester, NORM.replace("    return z", "    import time\n    time.sleep(600)"))
        assert hung.reason == "the kernel did not finish in 3 s"
        noisy = norm(tester, NORM.replace("    return z", "    print('noise')\n    return z"))
        assert noisy.passed, noisy.reason


@pytest.mark.parametrize(
    ("dtype", "number", "spacing"),
    [
        (torch.float32, 1.0, 2.0**-23),
        (torch.float32, 1.999, 2.0**-23),
        (torch.float32, -4.0, 2.0**-21),
        (torch.float32, 0.0, 2.0**-149),
        (torch.float32, 2.0**-130, 2.0**-149),
        (torch.float16, 1.0, 2.0**-10),
        (torch.float16, 0.0, 2.0**-24),
        (torch.bfloat16, 3.0, 2.0**-6),
    ],
)
def test_units_in_the_last_place(dtype: torch.dtype, number: float, spacing: float) -> None:
    eager = torch.tensor([number, math.inf, math.nan, 1.0], dtype=dtype).double()
    result = eager.clone()
    assert units_apart(result, eager, dtype) == 0.0
    result[0] += 3 * spacing
    assert units_apart(result, eager, dtype) == 3.0
    result[0] = math.nan  # what is not finite is not compared here: judge.py rejects it
    assert units_apart(result, eager, dtype) == 0.0


def test_each_scenario_is_a_request_and_the_first_that_fails_is_the_last(monkeypatch: pytest.MonkeyPatch) -> None:
    """A device that others wait for is theirs in between."""
    asked: list[int] = []

    class Noting(FloatTester):
        def _ask(self, request: bytes, *given: Any, **named: Any) -> Any:
            asked.append(json.loads(request).get("scenario", -1))
            return super()._ask(request, *given, **named)

    with Noting() as tester:
        result = norm(tester, NORM)
        assert result.passed
        assert asked == list(range(len(result.scenarios)))
        asked.clear()
        assert not norm(tester, NORM.replace("tl.sqrt(ss", "tl.sqrt(1.01 * ss")).passed
        assert asked == [0]


def test_all_scenarios_together_have_the_time_that_a_test_has() -> None:
    slow = NORM.replace("    return z", "    import time; time.sleep(0.6)\n    return z")
    assert slow != NORM
    with FloatTester(timeout_s=3.0) as tester:
        tester.begin()
        result = norm(tester, slow)
    assert not result.passed
    assert result.reason == "the kernel did not finish in 3 s"
