"""Random pairs of small programs: none that is different is accepted, and those that are equal are."""

from __future__ import annotations

import random
from itertools import islice

import pytest

from tests.trust.expressions import Node
from tests.trust.pairs import accepted, decided, pairs

X: Node = ("x",)
LARGE: Node = ("exp", ("mul", X, ("const", 1000.0)))
SIZES = {"i": 2, "j": 3}


def test_pairs_are_told_apart() -> None:
    chosen = list(islice(pairs(random.Random(7)), 250))
    said = [accepted(pair, number)[0] for number, pair in enumerate(chosen)]
    assert not [pair for pair, passed in zip(chosen, said, strict=True) if passed and pair.truth == "different"]
    equal = [passed for pair, passed in zip(chosen, said, strict=True) if pair.truth == "equal"]
    assert len(equal) > 50
    assert sum(equal) > 0.95 * len(equal)


@pytest.mark.parametrize(
    ("one", "other", "truth"),
    [
        (("sum", ("add", X, X), "i"), ("add", ("sum", X, "i"), ("sum", X, "i")), "equal"),
        (("exp", ("add", X, X)), ("mul", ("exp", X), ("exp", X)), "equal"),
        (("exp", ("sum", X, "i")), ("sum", ("exp", X), "i"), "different"),
        (("exp", X), ("add", LARGE, ("add", ("exp", X), ("mul", LARGE, ("const", -1.0)))), "equal"),
        (("sqrt", ("mul", X, X)), X, "different"),
        (("mul", ("sqrt", X), ("sqrt", X)), X, "equal"),
        (("div", ("const", 0.5), ("add", X, ("mul", X, ("const", -1.0)))), X, ""),
    ],
)
def test_the_judge(one: Node, other: Node, truth: str) -> None:
    assert decided(one, other, SIZES, random.Random(1)) == truth
