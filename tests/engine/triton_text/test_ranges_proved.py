"""What was proved before is known under other names, and from more formulas; from fewer ones, and of another claim, it
is asked again."""

from __future__ import annotations

from collections.abc import Sequence

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from mugraph.triton_text.ranges.formulas import Formula, at_most, every, less, same, some
from mugraph.triton_text.ranges.poly import Poly, atom, number
from mugraph.triton_text.ranges.proved import Proved
from mugraph.triton_text.ranges.prover import Counterexample, Prover, Undecided

SIZE, BLOCK, LANE = "n", "pid", "lane"


def bounds(size: str, block: str, lane: str, tile: int = 16) -> list[Formula]:
    """A lane's place, in one of the blocks that n elements take, is masked by n."""
    n, b, i = atom(size), atom(block), atom(lane)
    return [at_most(number(1), n), at_most(number(0), b), at_most(number(0), i), less(i, number(tile)),
            less(b * number(tile) + i, n)]  # fmt: skip


def inside(size: str, block: str, lane: str, tile: int = 16) -> Formula:
    place = atom(block) * number(tile) + atom(lane)
    return every((at_most(number(0), place), less(place, atom(size))))


class Counted(Prover):
    def __init__(self, proved: Proved) -> None:
        super().__init__(proved=proved)
        self.models = 0

    def model(self, formulas: Sequence[Formula]) -> Counterexample | Undecided | None:
        self.models += 1
        return super().model(formulas)


@pytest.fixture
def prover() -> Counted:
    return Counted(Proved())


def test_under_other_names_and_from_more(prover: Counted) -> None:
    assert prover.refuted(bounds("n", "pid", "lane"), inside("n", "pid", "lane")) is None
    known = [*bounds("n", "pid''", "lane'"), at_most(number(129), atom("n"))]
    assert prover.refuted(known, inside("n", "pid''", "lane'")) is None
    assert prover.refuted(reversed(known), inside("n", "pid''", "lane'")) is None
    assert (prover.models, prover.asked) == (1, 3)


def test_another_prover_of_the_same_memory_knows_it() -> None:
    proved = Proved()
    assert Counted(proved).refuted(bounds("n", "pid", "lane"), inside("n", "pid", "lane")) is None
    other = Counted(proved)
    assert other.refuted(bounds("n", "pid'", "lane"), inside("n", "pid'", "lane")) is None
    assert other.models == 0


def test_not_from_fewer(prover: Counted) -> None:
    assert prover.refuted(bounds("n", "pid", "lane"), inside("n", "pid", "lane")) is None
    without_mask = bounds("n", "pid", "lane")[:-1]
    assert isinstance(prover.refuted(without_mask, inside("n", "pid", "lane")), Counterexample)


def test_not_of_another_tile(prover: Counted) -> None:
    assert prover.refuted(bounds("n", "pid", "lane"), inside("n", "pid", "lane")) is None
    assert isinstance(prover.refuted(bounds("n", "pid", "lane"), inside("n", "pid", "lane", 17)), Counterexample)


def test_numbers_that_are_two_are_not_taken_for_one(prover: Counted) -> None:
    x, y = atom("lane"), atom("lane'")
    assert prover.refuted([], same(x, x + number(0))) is None
    assert isinstance(prover.refuted([], same(x, y)), Counterexample)
    assert prover.refuted([at_most(x, y), at_most(y, x)], same(x, y)) is None
    assert isinstance(prover.refuted([at_most(x, y)], same(x, y)), Counterexample)


LESS = st.tuples(st.sampled_from(["n", "n'", "n''", "m", "m'"]), st.integers(-3, 3), st.sampled_from(["n", "n'", "m"]))


def _formula(one: tuple[str, int, str]) -> Formula:
    a, by, b = one
    left: Poly = atom(a) + number(by)
    return less(left, atom(b)) if by % 2 else some((less(left, atom(b)), same(left, atom(b))))


@settings(deadline=None)  # z3 is asked
@given(st.lists(st.tuples(st.lists(LESS, max_size=4), LESS), min_size=2, max_size=5))
def test_whatever_was_asked_before_the_answer_is_the_same(
    asked: list[tuple[list[tuple[str, int, str]], tuple[str, int, str]]],
) -> None:
    proved = Proved()
    for known, claim in asked:
        formulas, wanted = [_formula(one) for one in known], _formula(claim)
        fresh = Prover().refuted(formulas, wanted)
        assert type(Prover(proved=proved).refuted(formulas, wanted)) is type(fresh)
