"""A convolution with its bias as one call of PyTorch: its text means that over the fields, and it runs."""

from __future__ import annotations

import pytest
import torch
import torch.nn.functional as F
from mugraph.codegen.lower import lower_kernels
from mugraph.optimizer.nodes import LIBRARY
from mugraph.search.direct import as_block
from mugraph.verification.float_test import FloatTester

from tests.engine.ir.library.calls import Made, call_of, check_call, check_graph, program_of


def of(*shapes: tuple[int, ...]) -> dict[str, torch.Tensor]:
    generator = torch.Generator().manual_seed(1)
    return {name: torch.randn(shape, generator=generator) for name, shape in zip("xwb", shapes, strict=True)}


@pytest.mark.parametrize(
    ("function", "tensors"),
    [
        (lambda x, w, b: F.conv1d(x, w, b, padding=1), of((2, 3, 9), (4, 3, 3), (4,))),
        (lambda x, w, b: F.conv2d(x, w, b, stride=2), of((2, 3, 9, 8), (4, 3, 3, 2), (4,))),
        (lambda x, w, b: F.conv2d(x, w) + b[:, None, None], of((2, 3, 9, 8), (4, 3, 3, 2), (4,))),
    ],
    ids=["1d", "2d", "by hand"],
)
def test_a_graph_with_it_is_verified(function: Made, tensors: dict[str, torch.Tensor], tester: FloatTester) -> None:
    call = call_of(function, tensors)
    assert call is not None
    check_call(call, function, tensors)
    program = program_of(function, tensors)
    check_graph(
        program, ("(x, w, b", "(x, w, None"), ("(1, 1)", "(1, 2)") if "1d" not in call.function else ("(1,)", "(0,)")
    )
    tested = tester.test_kernel(lower_kernels([(as_block(program), LIBRARY)]), program, seed=3)
    assert tested.passed, tested.reason
