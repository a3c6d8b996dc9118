"""Whether what runs gives what PyTorch's code gives, as the measuring process asks."""

from __future__ import annotations

import pytest
import torch
from mugraph.ir.dtypes import DType
from mugraph.tune import agreeing
from mugraph.tune.agreeing import agree, agree_on, on_copies
from mugraph.tune.messages import Agreed, Failure, InputSpec

from tests.support.tf32 import as_tf32

CPU = torch.device("cpu")
X, WEIGHT = InputSpec((4096, 8), (8, 1), "f32"), InputSpec((8, 16), (16, 1), "f32")


def found(mine: agreeing.Function, reference: agreeing.Function, *specs: InputSpec) -> Agreed:
    agreed = agree(mine, reference, specs, torch.Generator(CPU).manual_seed(1))
    assert isinstance(agreed, Agreed)
    return agreed


def mean_of_products(x: torch.Tensor, weight: torch.Tensor) -> torch.Tensor:
    return (x @ weight).mean(0)


def test_the_same_in_another_order() -> None:
    assert found(lambda x, weight: x.mean(0) @ weight, mean_of_products, X, WEIGHT).passed


@pytest.mark.parametrize("dtype", ["f8e4m3", "f8e5m2"])
def test_numbers_of_eight_bits_lose_their_signs_as_well(dtype: DType, monkeypatch: pytest.MonkeyPatch) -> None:
    """As on a GPU, which has no absolute value of them."""
    seen: list[torch.Tensor] = []

    def squares(x: torch.Tensor) -> torch.Tensor:
        seen.append(x.float())
        return x.float() * x.float()

    def of_more_bits(tensor: torch.Tensor) -> torch.Tensor:
        assert tensor.dtype.itemsize > 1
        return usual(tensor)

    usual = torch.Tensor.abs_
    monkeypatch.setattr(torch.Tensor, "abs_", of_more_bits)
    assert found(squares, squares, InputSpec((64, 64), (64, 1), dtype)).passed
    first, *_, last = seen
    assert (first < 0).any()
    assert torch.equal(last, first.abs())


def test_rounded_weights_are_seen_through_a_mean() -> None:
    """On inputs of both signs they even out: the mean of 4,096 is as right as it has to be."""

    def rounded(x: torch.Tensor, weight: torch.Tensor) -> torch.Tensor:
        return mean_of_products(x, as_tf32(weight))

    agreed = found(rounded, mean_of_products, X, WEIGHT)
    assert not agreed.passed
    assert agreed.limit < agreed.error < 1e-3


def test_what_pytorch_loses_itself_may_be_lost() -> None:
    """In either of two orders."""

    def rounded(x: torch.Tensor, weight: torch.Tensor) -> torch.Tensor:
        return (as_tf32(x) @ as_tf32(weight)).mean(0)

    assert found(rounded, lambda x, weight: mean_of_products(as_tf32(x), as_tf32(weight)), X, WEIGHT).passed


def test_an_element_at_several_places_and_a_mask_with_minus_infinity() -> None:
    from mugraph.ir.calls import Triangle

    expanded = InputSpec((4, 8, 8), (8, 0, 1), "f32")
    mask = InputSpec((8, 8), (8, 1), "f32", triangle=Triangle(0, 0.0, None))

    def softmax(x: torch.Tensor, mask: torch.Tensor) -> torch.Tensor:
        return (x + mask).softmax(-1)

    assert found(lambda x, mask: softmax(x, mask).clone(), softmax, expanded, mask).passed
    assert not found(lambda x, mask: x.softmax(-1), softmax, expanded, mask).passed


def test_without_double_precision_the_original_is_the_measure(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(agreeing.timing, "free_bytes", lambda: 0)
    agreed = found(mean_of_products, mean_of_products, X, WEIGHT)
    assert (agreed.passed, agreed.error) == (True, 0.0)


def test_indices_stay_integers() -> None:
    def taken(table: torch.Tensor, places: torch.Tensor) -> torch.Tensor:
        return table[places] * 2.0

    places = InputSpec((64,), (1,), "i64", high=16)
    assert found(taken, taken, InputSpec((16, 8), (8, 1), "f32"), places).passed


def test_another_number_of_results() -> None:
    answer = agree(lambda x: (x, x), lambda x: x, (X,), torch.Generator(CPU))
    assert answer == Failure("2 results where the original gives 1")


def test_rounding_more_than_the_code_does() -> None:
    """One product of three is rounded in the code: all three may not be, though the largest errors are of a size."""
    shapes = InputSpec((512, 64), (64, 1), "f32"), *(InputSpec((64, 64), (64, 1), "f32") for _ in range(3))

    def product(x: torch.Tensor, weight: torch.Tensor, rounds: bool) -> torch.Tensor:
        return as_tf32(x) @ as_tf32(weight) if rounds else x @ weight

    def chain(*rounds: bool) -> agreeing.Function:
        def run(x: torch.Tensor, *weights: torch.Tensor) -> torch.Tensor:
            for weight, one in zip(weights, rounds, strict=True):
                x = product(x, weight, one)
            return x

        return run

    reference = chain(False, True, False)
    assert found(reference, reference, *shapes).passed
    assert found(chain(True, False, False), reference, *shapes).passed
    more = found(chain(True, True, True), reference, *shapes)
    assert not more.passed
    assert more.error < 2.5 * more.limit


def test_nothing_but_nan_agrees_with_nothing() -> None:
    """The root of a negative number, and a product that spreads it: without a sign there are numbers."""

    def rooted(x: torch.Tensor, weight: torch.Tensor) -> torch.Tensor:
        return x.sqrt() @ weight

    assert found(rooted, rooted, X, WEIGHT).passed
    assert not found(lambda x, weight: 1.01 * rooted(x, weight), rooted, X, WEIGHT).passed

    def never(x: torch.Tensor, weight: torch.Tensor) -> torch.Tensor:
        return (-1 - x.abs()).sqrt() @ weight

    assert agree(never, never, (X, WEIGHT), torch.Generator(CPU).manual_seed(1)) == Failure(
        "on random inputs there are too few numbers to compare"
    )


def test_a_mask_of_minus_infinity_counts_as_numbers() -> None:
    def masked(x: torch.Tensor) -> torch.Tensor:
        return x.masked_fill(torch.ones(4096, 8, dtype=torch.bool).triu(-3), float("-inf"))

    assert found(masked, masked, X).passed


def short_of_memory(monkeypatch: pytest.MonkeyPatch, seen: list[torch.Size]) -> agreeing.Function:
    """There is memory for a few rows in double precision. seen: shapes of which that is asked"""
    monkeypatch.setattr(agreeing.timing, "free_bytes", lambda: 1 << 18)

    def softmax(x: torch.Tensor, weight: torch.Tensor) -> torch.Tensor:
        if x.dtype == torch.float64:
            seen.append(x.shape)
        return (x @ weight).softmax(-1)

    return softmax


def test_where_memory_is_short_rows_are_compared_with_double_precision(monkeypatch: pytest.MonkeyPatch) -> None:
    seen: list[torch.Size] = []
    softmax = short_of_memory(monkeypatch, seen)
    assert found(softmax, softmax, X, WEIGHT).error > 0, "of its own results it would be none"
    assert sum(shape[0] for shape in seen) == 2 * 4096, "all rows, with signs and without"
    assert max(shape[0] for shape in seen) < 4096 // 8
    assert not found(lambda x, w: softmax(as_tf32(x), w), softmax, X, WEIGHT).passed

    def one_row(x: torch.Tensor, weight: torch.Tensor) -> torch.Tensor:
        y = softmax(x, weight)
        y[3000] *= 1.001
        return y

    assert not found(one_row, softmax, X, WEIGHT).passed


@pytest.mark.parametrize("rows", ["all", "the last", "the middle"])
def test_rows_that_depend_on_others_are_compared_in_their_own_precision(
    rows: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A part of the inputs would give other numbers: by a mean over all, or by where the part lies."""
    seen: list[torch.Size] = []
    softmax = short_of_memory(monkeypatch, seen)

    def code(x: torch.Tensor, weight: torch.Tensor) -> torch.Tensor:
        y = softmax(x, weight)
        if rows == "all":
            return y - y.mean(0)
        places = torch.arange(len(x)) + 1
        return y * (places == (4096 if rows == "the last" else 2000))[:, None] + y

    agreed = found(code, code, X, WEIGHT)
    assert agreed.passed
    assert (agreed.error == 0) is (rows != "the middle"), "the part with that row alone"
    assert not found(lambda x, weight: code(x, weight) * 1.001, code, X, WEIGHT).passed


def test_another_order_of_sums_for_fewer_rows_is_no_dependence(monkeypatch: pytest.MonkeyPatch) -> None:
    """As in running sums of PyTorch's on a GPU."""
    seen: list[torch.Size] = []
    softmax = short_of_memory(monkeypatch, seen)

    def code(x: torch.Tensor, weight: torch.Tensor) -> torch.Tensor:
        y = softmax(x, weight)
        return y * (1 + 3e-6) if len(x) == 4096 and x.dtype == torch.float32 else y

    assert found(code, code, X, WEIGHT).error > 0, "in double precision, by rows"


def test_where_the_measure_rounds_as_well_both_may(monkeypatch: pytest.MonkeyPatch) -> None:
    """Sums that are half a dozen units off are so in the code's own result, which its own digits do not say."""
    monkeypatch.setattr(agreeing.timing, "free_bytes", lambda: 0)

    def code(x: torch.Tensor, weight: torch.Tensor) -> torch.Tensor:
        y = x @ weight
        return y - y.mean(0)

    def off_by(units: float) -> agreeing.Function:
        signs = torch.randn(X.shape[0], WEIGHT.shape[1]).sign()
        return lambda x, w: (y := code(x, w)) + y.abs().max() * units * 1e-7 * signs

    assert found(off_by(6), code, X, WEIGHT).passed
    assert not found(off_by(12), code, X, WEIGHT).passed


def test_what_is_written_to_is_compared_and_left_as_it_was() -> None:
    """Each side finds the inputs as they were: a step that is made twice is another one."""

    def step(p: torch.Tensor, g: torch.Tensor) -> None:
        p.mul_(0.5).add_(g)

    def wrong(p: torch.Tensor, g: torch.Tensor) -> None:
        p.mul_(0.5).add_(g, alpha=1.001)

    def with_a_result(p: torch.Tensor, g: torch.Tensor) -> torch.Tensor:
        step(p, g)
        return p.sum()

    p, g = torch.randn(8, 40).T, torch.randn(40, 8)
    before = p.clone()
    right = agree_on(on_copies(step, (0,)), on_copies(step, (0,)), (p, g))
    assert isinstance(right, Agreed)
    assert right.passed
    assert torch.equal(p, before)
    assert isinstance(agree_on(on_copies(with_a_result, (0,)), on_copies(step, (0,)), (p, g)), Failure)
    far = agree_on(on_copies(wrong, (0,)), on_copies(step, (0,)), (p, g))
    assert isinstance(far, Agreed)
    assert not far.passed
    assert on_copies(step, ()) is step
