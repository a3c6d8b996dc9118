"""A norm of groups of channels as one call of PyTorch: what is one however it is written, what only looks like one, and
that the call computes it."""

from __future__ import annotations

import pytest
import torch
import torch.nn.functional as F
from mugraph.codegen.lower import lower_kernels
from mugraph.optimizer.nodes import LIBRARY
from mugraph.search.direct import as_block
from mugraph.verification.float_test import FloatTester

from tests.engine.ir.library.calls import Made, call_of, check_call, check_graph, program_of

NAME = "torch.nn.functional.group_norm"
Tensors = dict[str, torch.Tensor]


def of(*shape: int, dtype: torch.dtype = torch.float16) -> Tensors:
    generator = torch.Generator().manual_seed(2)
    shapes = {"x": shape, "w": shape[1:2], "b": shape[1:2]}
    return {name: torch.randn(one, generator=generator).to(dtype) for name, one in shapes.items()}


def called(x: torch.Tensor, w: torch.Tensor, b: torch.Tensor) -> torch.Tensor:
    return F.group_norm(x, 4, w, b, 1e-6)


def by_hand(x: torch.Tensor, w: torch.Tensor, b: torch.Tensor) -> torch.Tensor:
    grouped = x.view(x.shape[0], 4, -1)
    mean = grouped.mean(-1, keepdim=True)
    variance = (grouped * grouped).mean(-1, keepdim=True) - mean * mean
    normed = ((grouped - mean) * torch.rsqrt(variance + 1e-6)).view(x.shape)
    return normed * w[:, None, None] + b[:, None, None]


def weighed(x: torch.Tensor, w: torch.Tensor, b: torch.Tensor) -> torch.Tensor:
    return F.group_norm(x, 8, w, eps=0.5)


SAME: dict[str, tuple[Made, Tensors, str]] = {
    "images": (called, of(2, 8, 3, 5), "(x, weight=w, bias=b, num_groups=4, eps=1e-06)"),
    "bfloat16": (called, of(2, 8, 3, 5, dtype=torch.bfloat16), "num_groups=4"),
    "float32": (called, of(3, 12, 7, dtype=torch.float32), "num_groups=4"),
    "no places": (called, of(6, 12), "num_groups=4"),
    "three dimensions of places": (called, of(1, 8, 2, 3, 4), "num_groups=4"),
    "by hand": (by_hand, of(2, 8, 3, 5, dtype=torch.float32), "(x, weight=w, bias=b, num_groups=4, eps=1e-06)"),
    "a weight": (weighed, of(2, 16, 6), "(x, weight=w, num_groups=8, eps=0.5)"),
    "each channel": (lambda x, w, b: F.instance_norm(x, weight=w, bias=b), of(2, 8, 3, 5), "num_groups=8"),
    "all channels": (lambda x, w, b: F.group_norm(x, 1, w, b), of(2, 8, 3, 5), "num_groups=1"),
}


@pytest.mark.parametrize("name", SAME)
def test_the_call_computes_what_the_code_does(name: str, tester: FloatTester) -> None:
    function, tensors, shown = SAME[name]
    call = call_of(function, tensors)
    assert call is not None
    assert call.function == NAME
    assert shown in call.shown
    check_call(call, function, tensors, atol=1e-9)
    program = program_of(function, tensors)
    check_graph(program, ("eps=", "eps=1 + "))
    tested = tester.test_kernel(lower_kernels([(as_block(program), LIBRARY)]), program, seed=3)
    assert tested.passed, tested.reason


def test_other_groups_are_refuted() -> None:
    check_graph(program_of(called, of(2, 8, 3, 5)), ("num_groups=4", "num_groups=2"), ("weight=w", "weight=b"))


@pytest.mark.parametrize(
    ("function", "tensors"),
    [
        (lambda x, w, b: F.group_norm(x, 4), of(2, 8, 3, 5)),  # a layer norm of each group
        (lambda x, w, b: F.layer_norm(x, (8,), w, b), of(2, 8)),
        (lambda x, w, b: F.group_norm(x, 4) + b[:, None, None], of(2, 8, 3, 5)),
        (lambda x, w, b: F.group_norm(x, 4) * w[:5], of(2, 8, 3, 5)),
        (lambda x, w, b: F.group_norm(x, 4, w, b) * w[:, None, None], of(2, 8, 3, 5)),
        (lambda x, w, b: F.relu(F.group_norm(x, 4, w, b)), of(2, 8, 3, 5)),
        (lambda x, w, b: F.layer_norm(x.transpose(1, 2), (8,), w, b).transpose(1, 2), of(2, 8, 5)),
    ],
)
def test_what_is_something_else_is_none(function: Made, tensors: Tensors) -> None:
    call = call_of(function, tensors)
    assert call is None or call.function != NAME
