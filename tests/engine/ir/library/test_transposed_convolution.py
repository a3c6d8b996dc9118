"""A transposed convolution as one call of PyTorch: its text means that over the fields, and it runs."""

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
    return {name: torch.randn(shape, generator=generator) for name, shape in zip("xwb", shapes, strict=False)}


@pytest.mark.parametrize(
    ("function", "tensors", "shown", "wrong"),
    [
        (
            lambda x, w: F.conv_transpose2d(x, w, stride=2, padding=1, output_padding=(1, 0)),
            of((2, 3, 4, 5), (3, 4, 3, 2)),
            "torch.conv_transpose2d(x, w, None, (2, 2), (1, 1), (1, 0), 1, (1, 1))",
            (("(1, 0)", "(0, 1)"), ("(1, 1), (1, 0)", "(0, 0), (1, 0)")),
        ),
        (
            lambda x, w, b: F.conv_transpose1d(x, w, b, stride=3, dilation=2, groups=2),
            of((2, 4, 5), (4, 3, 3), (6,)),
            "torch.conv_transpose1d(x, w, b, (3,), (0,), (0,), 2, (2,))",
            (("(x, w, b", "(x, w, None"),),
        ),
        (
            lambda x, w, b: F.conv_transpose2d(x, w, padding=1) + b[:, None, None],
            of((2, 3, 4, 5), (3, 2, 3, 3), (2,)),
            "torch.conv_transpose2d(x, w, b, (1, 1), (1, 1), (0, 0), 1, (1, 1))",
            (("(x, w, b", "(x, w, None"),),
        ),
        (
            lambda x, w: F.conv_transpose1d(x, w, stride=2),
            of((3, 5), (3, 2, 1)),
            "torch.conv_transpose1d(x, w, None, (2,), (0,), (0,), 1, (1,))",
            (("(2,)", "(1,)"),),
        ),
    ],
    ids=["steps", "groups", "bias by hand", "no batch"],
)
def test_a_graph_with_it_is_verified(
    function: Made,
    tensors: dict[str, torch.Tensor],
    shown: str,
    wrong: tuple[tuple[str, str], ...],
    tester: FloatTester,
) -> None:
    call = call_of(function, tensors)
    assert call is not None
    assert call.shown == shown
    check_call(call, function, tensors)
    program = program_of(function, tensors)
    check_graph(program, *wrong)
    tested = tester.test_kernel(lower_kernels([(as_block(program), LIBRARY)]), program, seed=3)
    assert tested.passed, tested.reason


def test_a_convolution_of_turned_taps_without_steps_is_one() -> None:
    """By what it computes, not by how it was written."""

    def turned(x: torch.Tensor, w: torch.Tensor) -> torch.Tensor:
        return F.conv2d(x, w.flip(2, 3).transpose(0, 1), padding=2)

    call = call_of(turned, of((2, 3, 4, 5), (3, 4, 3, 3)))
    assert call is not None
    assert call.function == "torch.conv_transpose2d"
    check_call(call, turned, of((2, 3, 4, 5), (3, 4, 3, 3)))


@pytest.mark.parametrize(
    "other",
    [
        lambda x, w: F.conv_transpose2d(x, w.flip(2), stride=2),
        lambda x, w: F.conv_transpose2d(x, 2 * w, stride=2),
    ],
    ids=["one dimension turned", "another weight"],
)
def test_what_it_is_not(other: Made) -> None:
    assert call_of(other, of((2, 3, 4, 5), (3, 4, 3, 2))) is None
