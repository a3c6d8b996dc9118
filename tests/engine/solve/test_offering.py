"""What is offered: faster than the code as it runs, slower than nothing a person has, on neither clock."""

from __future__ import annotations

from dataclasses import replace

import pytest
from mugraph.events import Called, SizeTiming, Timing
from mugraph.protocol.gain_words import gain_words, here_words
from mugraph.protocol.settings import CompareWith
from mugraph.solve.offering import judged

PEERS = {"eager": 12.0, "torch.compile": 11.0, "max-autotune": 10.2}


def timing(code: float, best: float, called: float | None = None, called_best: float | None = None) -> Timing:
    """With these gains on the device and as it is called."""
    as_called = None
    if called is not None:
        peers = {"eager": 94.0, "torch.compile": 80.0}
        as_called = Called(94.0, 94.0 / called, called, peers, "torch.compile", called_best)
    return Timing(12.0, 12.0 / code, code, PEERS, "max-autotune", best, as_called, source="measured", device="a GPU")


@pytest.mark.parametrize(
    ("compare_with", "gains", "why"),
    [
        ("both", timing(1.20, 1.02, 1.2, 1.1), None),
        ("both", timing(1.20, 1.0, 1.2, 1.0), None),
        ("both", timing(1.20, 0.95, 1.2, 1.1), "on the device the kernel is slower than torch.compile max-autotune"),
        ("both", timing(1.65, 1.20, 0.83, 1.1), "as it is called the kernel is slower than the code as it runs"),
        ("both", timing(1.65, 1.20, 1.1, 0.9), "as it is called the kernel is slower than torch.compile"),
        ("both", timing(0.9, 1.0, 1.5, 1.2), "on the device the kernel is slower than the code as it runs"),
        ("both", timing(1.0, 1.0, 1.0, 1.0), "not faster"),
        ("both", timing(1.0, 1.0, 1.5, 1.2), None),
        ("both", timing(1.65, 1.2), None),
        ("code", timing(1.20, 0.72, 1.2, 0.9), None),
        ("code", timing(1.65, 1.20, 0.83, 1.1), "as it is called the kernel is slower than the code as it runs"),
        ("best", timing(1.20, 1.02, 1.2, 1.1), None),
        ("best", timing(1.20, 1.0, 1.2, 1.0), "not faster"),
        ("best", timing(1.20, 0.95, 1.2, 1.1), "slower than torch.compile max-autotune"),
    ],
)
def test_what_is_offered(compare_with: CompareWith, gains: Timing, why: str | None) -> None:
    found = judged(gains, compare_with)
    assert found.gains == (why is None)
    assert (found.why_not is None) == (why is None)
    assert why is None or why in (found.why_not or "")


def test_the_reason_has_both_times() -> None:
    called = Called(94.0, 113.0, 94 / 113, {"eager": 94.0}, "eager", 94 / 113)
    found = judged(replace(timing(1.65, 1.2), as_called=called), "both")
    assert found.why_not == "as it is called the kernel is slower than the code as it runs, 113.0 µs against 94.0"


def test_an_estimate_is_judged_by_what_pytorch_would_run() -> None:
    peers = {"eager": 12.0, "torch.compile": 8.0}
    slower = Timing(12.0, 10.0, 1.2, peers, "torch.compile", 0.8)
    assert judged(slower, "code").gains
    why = judged(slower, "both").why_not
    assert why is not None
    assert "estimated" in why
    assert "torch.compile" in why


def test_each_size_of_a_range_is_judged_for_itself() -> None:
    rows = (
        SizeTiming(10.0, 5.0, 2.0, {"eager": 10.0}, "eager", 2.0, size=1),
        SizeTiming(10.0, 11.0, 0.9, {"eager": 10.0}, "eager", 0.9, size=64),
    )
    found = judged(Timing(10.0, 5.0, 2.0, source="measured", sizes=rows, at=1), "both")
    assert [row.gains for row in found.sizes] == [True, False]


@pytest.mark.parametrize(
    ("gains", "words"),
    [
        (timing(1.20, 1.02, 1.2, 1.02), "1.20x as it runs, 1.02x torch.compile max-autotune"),
        (timing(1.65, 1.20, 1.10, 1.20), "1.65x on the device, 1.10x as called, 1.20x torch.compile max-autotune"),
        (timing(1.65, 1.50, 1.60, 1.1), "1.65x as it runs, 1.50x torch.compile max-autotune (1.10x as called)"),
        (timing(1.65, 1.20), "1.65x on the device, 1.20x torch.compile max-autotune"),
        (replace(timing(1.65, 1.65, 1.65), best_peer="eager"), "1.65x as it runs"),
    ],
)
def test_the_title_says_both_where_the_clocks_differ(gains: Timing, words: str) -> None:
    assert gain_words([gains], measured=True) == words


def test_a_setting_narrows_what_the_title_compares_with() -> None:
    one = timing(1.20, 1.02, 1.2, 1.02)
    assert gain_words([one], measured=True, compare_with="code", sign="×") == "1.20× as it runs"
    assert gain_words([one], measured=True, compare_with="best", sign="×") == "1.02× torch.compile max-autotune"


def test_an_estimate_has_no_digits_it_has_not_earned() -> None:
    assert gain_words([timing(2.983, 1.2)], measured=False, sign="×") == "about 3× by estimate"
    assert gain_words([timing(12.4, 1.2)], measured=False) == "about 12x by estimate"
    assert gain_words([timing(1.046, 1.0)], measured=False) == "about 1.05x by estimate", "not 1x, which would be none"
    assert here_words(4.206, measured=False, sign="×") == "about 4.2× here by estimate"
    assert here_words(1.6, measured=True) == "1.60x here"


def test_several_sizes() -> None:
    rows = [timing(1.4, 1.2, 1.4, 1.2), timing(2.3, 1.5, 2.2, 1.5)]
    assert gain_words(rows, measured=True) == "1.40x to 2.30x as it runs, 1.20x to 1.50x torch.compile max-autotune"
