"""Parameters are graphs: symmetric, connected, and of the degrees that OpEvo's topologies have."""

from __future__ import annotations

from math import comb, prod

import pytest
from hypothesis import given
from hypothesis import strategies as st
from mugraph.search.schedules.parameters import Parameter, categorical, discrete, factorisation

from .spaces import parameters


def reached(parameter: Parameter) -> set[int]:
    found, new = {0}, [0]
    while new:
        near = [to for at in new for to in parameter.adjacent[at] if to not in found]
        new = list(dict.fromkeys(near))
        found.update(new)
    return found


@given(st.data())
def test_symmetric_and_connected(data: st.DataObject) -> None:
    parameter = data.draw(parameters(0))
    assert len(set(parameter.values)) == len(parameter.values)
    for at, near in enumerate(parameter.adjacent):
        assert at not in near
        assert all(at in parameter.adjacent[other] for other in near)
    assert reached(parameter) == set(range(len(parameter.values)))
    assert len(set(parameter.features)) == len(parameter.values)
    assert all(0 <= one <= 1 for row in parameter.features for one in row)


@pytest.mark.parametrize("factors", [1, 2, 3, 4])
def test_every_factorisation_once(factors: int) -> None:
    parameter = factorisation("m", 2**5 * 3**2, factors)
    assert len(parameter.values) == comb(5 + factors - 1, factors - 1) * comb(2 + factors - 1, factors - 1)
    assert all(prod(value) == 288 for value in parameter.values if isinstance(value, tuple))


def test_one_prime_moves_from_one_factor_to_another() -> None:
    parameter = factorisation("m", 12, 3)
    near = {parameter.values[at] for at in parameter.adjacent[parameter.values.index((2, 6, 1))]}
    assert near == {(1, 12, 1), (1, 6, 2), (4, 3, 1), (2, 3, 2), (6, 2, 1), (2, 2, 3)}


def test_a_corner_of_the_papers_figure_has_two_neighbours_and_its_middle_six() -> None:
    parameter = factorisation("m", 8, 3)
    degree = {value: len(parameter.adjacent[at]) for at, value in enumerate(parameter.values)}
    assert len(degree) == 10
    assert degree[8, 1, 1] == 2
    assert degree[2, 2, 2] == 6
    assert degree[4, 2, 1] == 4


def test_a_move_goes_on_past_what_the_space_lacks() -> None:
    parameter = factorisation("m", 64, 2, lambda value: value[1] in (1, 8, 16))
    assert [value[1] for value in parameter.values if isinstance(value, tuple)] == [16, 8, 1]
    assert parameter.adjacent == ((1,), (0, 2), (1,))
    with pytest.raises(ValueError, match="admitted"):
        factorisation("m", 64, 2, lambda value: False)


def test_numbers_have_the_next_ones_and_categories_all() -> None:
    assert discrete("warps", (8, 1, 2)).values == (1, 2, 8)
    assert discrete("warps", (8, 1, 2)).adjacent == ((1,), (0, 2), (1,))
    assert categorical("precision", ("a", "b", "c")).adjacent == ((1, 2), (0, 2), (0, 1))
    assert categorical("one", ("a",)).adjacent == discrete("one", (4,)).adjacent == ((),)
