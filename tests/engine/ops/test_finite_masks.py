"""Logits that code hides by a finite number: PyTorch's numbers also in rows of which two masks together hide all."""

from __future__ import annotations

from collections.abc import Callable

import pytest
import torch
import torch.nn.functional as F
from mugraph.ir.ops import Kind
from mugraph.ir.program import TensorProgram
from mugraph.search.direct import as_block
from mugraph.verification.torch_reference import evaluate, outputs
from mugraph.verification.verifier import verify_topology

from tests.engine.ops.harness import lower_region, randn, record

Q, K, V = randn(2, 3, 6, 8), randn(2, 3, 6, 8, seed=1), randn(2, 3, 6, 4, seed=2)
LOW = torch.finfo(torch.float32).min / 4
"""Four of them are still a number."""
SEEN = torch.tensor([[False, False, True, True, True, True], [True, True, True, False, True, True]])
"""Of the first sequence a causal mask leaves the first two rows nothing."""
PADDING = (1.0 - SEEN[:, None, None, :].float()) * LOW

Made = Callable[[torch.Tensor, torch.Tensor], torch.Tensor]


def causal() -> torch.Tensor:
    return torch.ones(6, 6, dtype=torch.bool).tril()


def check(function: Callable[..., torch.Tensor], **tensors: torch.Tensor) -> TensorProgram:
    """The program, whose numbers are PyTorch's."""
    program = lower_region(record(function, tensors)).program
    given = {tensor.name: tensors[tensor.source or tensor.name] for tensor in program.tensors}
    (found,) = outputs(program, evaluate(program, given, shifts=True)).values()
    wide = {name: tensor.double() if tensor.is_floating_point() else tensor for name, tensor in tensors.items()}
    torch.testing.assert_close(found, function(**wide))
    return program


WITH_A_MASK: dict[str, Made] = {
    "where, then added": lambda s, m: torch.where(causal(), s, LOW) + m,
    "masked_fill, then added": lambda s, m: s.masked_fill(~causal(), LOW) + m,
    "added, then where": lambda s, m: torch.where(causal(), s + m, LOW),
    "masks added first": lambda s, m: s + (torch.full((6, 6), LOW).triu(1) + m),
    "added one after the other": lambda s, m: (s + torch.full((6, 6), LOW).triu(1)) + m,
    "added last": lambda s, m: (s + m) + (1 - causal().float()) * LOW,
    "small": lambda s, m: torch.where(causal(), s, -1e4) + m / LOW * -1e4,
    "scaled afterwards": lambda s, m: torch.where(causal(), s + m, LOW) / 2,
}


@pytest.mark.parametrize("name", WITH_A_MASK)
def test_two_masks_hide_all_of_a_row(name: str) -> None:
    masked = WITH_A_MASK[name]
    program = check(lambda q, k, v, m: masked(q @ k.mT, m).softmax(-1) @ v, q=Q, k=K, v=V, m=PADDING)
    assert verify_topology(program, as_block(program)).passed


def test_a_condition_that_is_read_chooses_the_number_before() -> None:
    def padded(q: torch.Tensor, k: torch.Tensor, v: torch.Tensor, m: torch.Tensor) -> torch.Tensor:
        s = (q @ k.mT).masked_fill(m.logical_not()[:, None, None, :], LOW)
        return s.masked_fill(~causal(), LOW).softmax(-1) @ v

    check(padded, q=Q, k=K, v=V, m=SEEN)


def test_the_rows_that_see_something_then_hide_by_infinity() -> None:
    def padded(q: torch.Tensor, k: torch.Tensor, v: torch.Tensor, m: torch.Tensor) -> torch.Tensor:
        s = torch.where(causal(), q @ k.mT, LOW)
        return s.masked_fill(~m[:, None, None, :], -torch.inf).softmax(-1) @ v

    check(padded, q=Q, k=K, v=V, m=SEEN)


def kinds(made: Callable[[torch.Tensor], torch.Tensor]) -> list[Kind]:
    program = check(lambda q, k, v: made(q @ k.mT).softmax(-1) @ v, q=Q, k=K, v=V)
    return [op.kind for op in program.ops]


@pytest.mark.parametrize(
    "made",
    [
        lambda s: torch.where(causal(), s, LOW),
        lambda s: s + torch.full((6, 6), -1e9).triu(1),
        lambda s: torch.where(causal(), s, -1e9) + torch.arange(6),
    ],
)
def test_a_mask_alone_hides_as_minus_infinity_does(made: Callable[[torch.Tensor], torch.Tensor]) -> None:
    """So that a kernel need not look at what it hides."""
    of_it = kinds(made)
    assert of_it.count(Kind.MASK) == 1
    assert of_it.index(Kind.EXP) < len(of_it) - 1 - of_it[::-1].index(Kind.MUL)


def test_a_bias_hides_nothing_of_what_a_mask_leaves() -> None:
    check(
        lambda q, k, v, bias: F.softmax(torch.where(causal(), q @ k.mT, LOW) + bias, -1) @ v,
        q=Q,
        k=K,
        v=V,
        bias=randn(3, 6, 6, seed=4),
    )
