"""How far an element may be off is told by a few random draws, and by more of them where few elements are wrong."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace

import torch
from mugraph.verification.judge import Compared, trouble_by_more

ROWS, COLUMNS = 64, 512
ERROR = 1e-6


def draws(count: int, generator: torch.Generator) -> list[torch.Tensor]:
    """Of zeros: each element has an error of its own, and each row one of the same size, up or down."""

    def signs(*shape: int) -> torch.Tensor:
        return 2.0 * torch.randint(0, 2, shape, generator=generator, dtype=torch.float64) - 1.0

    return [1.0 + ERROR * (signs(ROWS, COLUMNS) + signs(ROWS, 1)) for _ in range(count)]


def compared(wrong: dict[tuple[int, int], float]) -> tuple[Compared, torch.Generator]:
    """A right result, but for what is added in `wrong`."""
    generator = torch.Generator().manual_seed(5)
    exact = torch.ones(ROWS, COLUMNS, dtype=torch.float64)
    few = draws(4, generator)
    result = exact + ERROR * torch.randn(ROWS, COLUMNS, generator=generator, dtype=torch.float64)
    for at, by in wrong.items():
        result[at] += by
    return Compared(result, exact, exact, few, torch.float64), generator


def quiet_element(one: Compared) -> tuple[int, int]:
    """An element whose errors cancel in all draws."""
    spread = torch.stack([(draw - one.exact).abs() for draw in one.draws]).amax(0)
    row, column = divmod(int(spread.argmin()), COLUMNS)
    assert float(spread[row, column]) < ERROR / 1e3
    return row, column


def test_errors_that_cancel_in_all_of_a_few_draws_are_seen_in_more() -> None:
    """Of an element without neighbours that tell how large errors are."""
    one, generator = compared({})
    at = quiet_element(one)
    few = [torch.ones_like(draw) for draw in one.draws]
    for alone, draw in zip(few, one.draws, strict=True):
        alone[at] = draw[at]
    result = one.exact.clone()
    result[at] += 2 * ERROR
    quiet = replace(one, result=result, draws=few)
    assert quiet.trouble() is not None
    assert quiet.is_at_few_places
    more = [*few, *draws(12, generator)]
    assert replace(quiet, draws=more).trouble() is None


def test_a_wrong_element_stays_wrong() -> None:
    one, generator = compared({(3, 7): 100 * ERROR})
    assert one.trouble() is not None
    assert one.is_at_few_places
    assert replace(one, draws=[*one.draws, *draws(12, generator)]).trouble() is not None


def test_what_is_wrong_everywhere_is_asked_nothing_more() -> None:
    one, _ = compared({(row, column): 100 * ERROR for row in range(ROWS) for column in range(COLUMNS)})
    assert one.trouble() is not None
    assert not one.is_at_few_places


def test_a_result_that_is_no_number_is_asked_nothing_more() -> None:
    one, _ = compared({(3, 7): float("nan")})
    assert one.trouble() is not None
    assert not one.is_at_few_places


def of_minima(rows: int, generator: torch.Generator) -> Compared:
    """Minima of rows, each added to all numbers of a bias: a row of results has one error."""
    bias = torch.randn(COLUMNS, generator=generator, dtype=torch.float64)
    minima = 0.3 * torch.randn(rows, 1, generator=generator, dtype=torch.float64) - 3.0

    def drawn() -> torch.Tensor:
        return bias + minima + ERROR * torch.randn(rows, 1, generator=generator, dtype=torch.float64)

    exact = bias + minima
    few = [drawn() for _ in range(4)]
    return Compared(drawn(), exact, exact, few, torch.float64)


def more_of(one: Compared, generator: torch.Generator) -> Callable[[int], torch.Tensor]:
    """Further draws of minima of rows."""
    rows = one.exact.shape[0]
    return lambda _: one.exact + ERROR * torch.randn(rows, 1, generator=generator, dtype=torch.float64)


def test_rows_of_one_error_are_judged_by_more_draws_than_four() -> None:
    """Of a right kernel's rows one is called wrong now and then, where four draws had small errors by chance."""
    wrong = 0
    for seed in range(60):
        generator = torch.Generator().manual_seed(seed)
        one = of_minima(1024, generator)
        wrong += one.trouble() is not None
        assert trouble_by_more(one, more_of(one, generator)) is None
    assert wrong


def test_a_wrong_row_stays_wrong() -> None:
    generator = torch.Generator().manual_seed(1)
    one = of_minima(1024, generator)
    result = one.result.clone()
    result[276] += 12 * ERROR
    said = trouble_by_more(replace(one, result=result), more_of(one, generator))
    assert "at 276 of dimension 0" in (said or "")


def test_wrong_rows_are_asked_nothing_more() -> None:
    generator = torch.Generator().manual_seed(1)
    one = of_minima(1024, generator)
    result = one.result.clone()
    result[::8] += 18 * ERROR
    asked: list[int] = []

    def drawn(number: int) -> torch.Tensor:
        asked.append(number)
        return one.exact

    assert trouble_by_more(replace(one, result=result), drawn) is not None
    assert not asked
