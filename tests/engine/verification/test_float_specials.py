"""NaN, infinities and subnormal numbers among the inputs: results are numbers where PyTorch's are, and only there."""

from __future__ import annotations

from collections.abc import Iterator

import pytest
import torch
from mugraph.ir.tensors import DType
from mugraph.verification.float_inputs import make_inputs, scenarios
from mugraph.verification.float_results import FloatResult
from mugraph.verification.float_test import FloatTester

from tests.engine.verification.float_programs import norm_program
from tests.engine.verification.launchers import FAMILIES

_HEAD = "import torch\n\n\n"
_NORM = """\
def launch(x, g, w):
    x, g, w = x.float(), g.float(), w.float()
    scale = (x.square().sum(-1, keepdim=True) / 1024 + 1e-6).rsqrt()
    return ((x * g) @ w.mT * scale).to(torch.float16)
"""
_SOFTMAX = """\
def launch(x):
    x = x.float()
    largest = torch.full((32, 1), float("-inf"))
    total = torch.zeros((32, 1))
    for part in x.split(128, -1):
        new = torch.maximum(largest, part.amax(-1, keepdim=True))
        shift = torch.where(new == float("-inf"), 0.0, new)
        total = total * torch.exp(largest - shift) + torch.exp(part - shift).sum(-1, keepdim=True)
        largest = new
    return (torch.exp(x - largest) / total).to(torch.float16)
"""


@pytest.fixture(scope="module")
def tester() -> Iterator[FloatTester]:
    with FloatTester(timeout_s=120) as tester:
        yield tester


def norm(tester: FloatTester, text: str) -> FloatResult:
    return tester.test(_HEAD + text, "launch", norm_program(), ["x", "g", "w"], ["z"])


def softmax(tester: FloatTester, text: str) -> FloatResult:
    program = FAMILIES["softmax f16"].program()
    return tester.test(_HEAD + text, "launch", program, ["x"], [t.name for t in program.outputs.values()])


def test_right_ones_pass(tester: FloatTester) -> None:
    for result in (norm(tester, _NORM), softmax(tester, _SOFTMAX)):
        assert result.passed, result.reason
        assert [one.name for one in result.scenarios][-3:] == ["subnormal", "NaN", "infinite"]


@pytest.mark.parametrize(
    ("old", "new", "told"),
    [
        ("x.float(), g", "x.float().nan_to_num(), g", "is a number, where PyTorch has NaN or infinity (NaN inputs)"),
        ("x.float(), g", "x.float().clamp(-6e4, 6e4), g", "where PyTorch has NaN or infinity (infinite inputs)"),
        ("* scale)", "* scale + 0 * x.sum())", "is NaN or infinite, where PyTorch has a number (NaN inputs)"),
        ("x.float(), g", "torch.where(x.abs() < 6e-5, 0, x).float(), g", "explains"),
    ],
)
def test_wrong_sums(tester: FloatTester, old: str, new: str, told: str) -> None:
    assert old in _NORM
    result = norm(tester, _NORM.replace(old, new, 1))
    assert not result.passed
    assert told in (result.reason or "")


@pytest.mark.parametrize(
    ("old", "new", "told"),
    [
        ('torch.where(new == float("-inf"), 0.0, new)', "new", "where PyTorch has a number (infinite inputs)"),
        ('float("-inf"))\n    total', "-1e4)\n    total", ""),
        ("x.float()", "x.float().nan_to_num(0.0)", "where PyTorch has NaN or infinity (NaN inputs)"),
    ],
)
def test_wrong_softmax(tester: FloatTester, old: str, new: str, told: str) -> None:
    """What is hidden by minus infinity, as by a mask, counts for nothing, be it all that a step of the loop sees."""
    assert old in _SOFTMAX
    result = softmax(tester, _SOFTMAX.replace(old, new, 1))
    assert result.passed is not bool(told), result.reason
    assert told in (result.reason or "")


@pytest.mark.parametrize(("dtype", "is_there"), [("f16", True), ("bf16", False), ("f32", False)])
def test_subnormal_numbers_of_float16_alone(dtype: DType, *, is_there: bool) -> None:
    assert ("subnormal" in scenarios(norm_program(dtype))) == is_there


def test_most_results_stay_numbers() -> None:
    """Those that depend on other rows. Every result of a product depends on every row of what is summed over."""
    program = norm_program()
    drawn = make_inputs(program, "NaN", torch.Generator().manual_seed(3))
    assert drawn is not None
    assert {name: bool(data.isnan().any()) for name, data in drawn.inputs.items()} == {"x": True, "g": False, "w": True}
    (result,) = drawn.eager.values()
    assert int(result.isnan().sum()) == 20 + 72 - 1
