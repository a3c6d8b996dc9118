"""Programs with a softmax whose logits leave float64's range, beside the calls they were made of."""

from __future__ import annotations

from collections.abc import Callable

import pytest
import torch
import torch.nn.functional as F
from mugraph.search.direct import as_block
from mugraph.verification.conditioning import loses_digits
from mugraph.verification.float_inputs import make_inputs, scenarios
from mugraph.verification.lowering.run import beside_calls
from mugraph.verification.shifted_exponents import shifted, shifted_along

from tests.engine.ops.harness import lower_region, randn, record
from tests.engine.verification.recorded_units import unit_from

Made = Callable[..., torch.Tensor]


def of_bert(q: torch.Tensor, k: torch.Tensor, v: torch.Tensor, m: torch.Tensor) -> torch.Tensor:
    hidden = (1.0 - m[:, None, :]) * -10000.0
    return F.softmax(q @ k.transpose(-1, -2) / 2 + hidden, dim=-1) @ v


def divided_last(q: torch.Tensor, k: torch.Tensor, v: torch.Tensor, m: torch.Tensor) -> torch.Tensor:
    weights = torch.exp(q @ k.mT * 1000 - 5000 * m[:, None, :].abs())
    return (weights @ v) / weights.sum(-1, keepdim=True)


TENSORS = {"q": randn(2, 5, 4), "k": randn(2, 6, 4), "v": randn(2, 6, 3), "m": randn(2, 6)}


def test_logits_that_a_number_hides_are_compared_with_the_calls() -> None:
    result = beside_calls(unit_from(of_bert, **TENSORS), 0)
    assert result.passed, result.reason


def wrong(q: torch.Tensor, k: torch.Tensor, v: torch.Tensor, m: torch.Tensor) -> torch.Tensor:
    return of_bert(q, k, v, m * 1.001)


def test_a_wrong_program_is_seen_among_such_logits() -> None:
    right, other = unit_from(of_bert, **TENSORS), unit_from(wrong, **TENSORS)
    assert other.program.ops != right.program.ops
    mixed = type(right)(**{**{n: getattr(right, n) for n in right.__dataclass_fields__}, "program": other.program})
    assert beside_calls(mixed, 0).passed is False


def axes(function: Made) -> list[frozenset[str]]:
    tensors = {name: tensor for name, tensor in TENSORS.items() if name in function.__code__.co_varnames}
    return list(shifted_along(lower_region(record(function, tensors)).program).values())


@pytest.mark.parametrize("function", [of_bert, divided_last])
def test_a_row_is_what_the_sum_runs_over(function: Made) -> None:
    assert [len(along) for along in axes(function)] == [1]


def test_an_exponential_that_shows_in_the_result_is_left_alone() -> None:
    def plain(q: torch.Tensor) -> torch.Tensor:
        return torch.exp(q).sum(-1)

    def of_a_logarithm(q: torch.Tensor) -> torch.Tensor:
        return torch.logsumexp(q, -1)

    def with_more(q: torch.Tensor) -> torch.Tensor:
        return torch.exp(q) / (1.5 + torch.exp(q).sum(-1, keepdim=True))

    assert [axes(function) for function in (plain, of_a_logarithm, with_more)] == [[], [], []]


def test_a_row_is_moved_as_far_as_it_has_to_be() -> None:
    data = torch.tensor([[1000.0, 900.0], [150.0, -1e9], [-5000.0, -5001.0], [float("-inf"), float("-inf")]])
    moved = shifted(data.double(), ("a", "b"), {"b"})
    assert moved.tolist() == [[200.0, 100.0], [150.0, -1e9], [-200.0, -201.0], [float("-inf"), float("-inf")]]


def test_inputs_of_every_kind_are_found_for_logits_that_do_not_follow_them() -> None:
    """There were none for which the program stays in range, so that no kernel of it could be tested."""
    half = {name: tensor.half() for name, tensor in TENSORS.items()}
    program = lower_region(record(of_bert, half)).program
    for scenario in scenarios(program):
        drawn = make_inputs(program, scenario, torch.Generator().manual_seed(1))
        assert drawn is not None, scenario
    drawn = make_inputs(program, "normal", torch.Generator().manual_seed(1))
    assert drawn is not None
    assert all(float(tensor.float().std()) > 0.1 for tensor in drawn.inputs.values())


def test_what_repeats_its_inputs_has_no_errors_to_compare_with() -> None:
    """One logit is above all others by hundreds; half a unit in the last place is no loss then."""
    program = lower_region(record(of_bert, {name: tensor.half() for name, tensor in TENSORS.items()})).program
    assert [loses_digits(program, [as_block(program)], seed) for seed in range(3)] == [None] * 3
