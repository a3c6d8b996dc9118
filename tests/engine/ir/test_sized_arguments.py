"""Numbers that are powers of sizes: which are one, and what is written for them."""

from __future__ import annotations

from math import log, sqrt

import pytest
from mugraph.ir.calls import Symbol
from mugraph.ir.ranges import Product
from mugraph.ir.sized_arguments import SizedNumber, sized, sized_in, sized_of, with_sizes

POINTS = [{"s": 300, "t": 64}, {"s": 149, "t": 31}, {"s": 1, "t": 2}, {"s": 149, "t": 64}, {"s": 300, "t": 31}]


@pytest.mark.parametrize(
    ("factor", "names", "power"),
    [(1.0, ("s",), -0.5), (0.125, ("t",), -1.0), (3.0, ("s", "t"), 0.5), (2.5, ("s",), 1.0)],
)
def test_powers_of_products_are_found(factor: float, names: tuple[str, ...], power: float) -> None:
    number = SizedNumber(factor, Product(1, names), power)
    found = sized_of([number.at(point) for point in POINTS], POINTS)
    assert found is not None
    assert found.at({"s": 17, "t": 5}) == pytest.approx(number.at({"s": 17, "t": 5}), rel=1e-13)
    assert sized_in(sized(number)) == number
    assert with_sizes(sized(number), POINTS[1]) == number.at(POINTS[1])
    text = with_sizes(sized(number), None, {"s": "n", "t": "k.shape[1]"})
    point = {"n": 149, "k": type("K", (), {"shape": (0, 31)})}
    assert isinstance(text, Symbol)
    assert eval(text.name, point) == pytest.approx(number.at(POINTS[1]), rel=1e-15)


def test_roots_of_sums_are_found() -> None:
    found = sized_of([1 / sqrt(point["s"] + point["t"] + 1) for point in POINTS], POINTS)
    assert found is not None
    assert found.at({"s": 4, "t": 5}) == pytest.approx(10**-0.5)


def test_nothing_else_is_taken_for_one() -> None:
    assert sized_of([log(point["s"] + 1) for point in POINTS], POINTS) is None
    assert sized_of([min(point["s"], 200) ** -0.5 for point in POINTS], POINTS) is None
    assert sized_of([0.5, 0.25], POINTS[:2]) is None
