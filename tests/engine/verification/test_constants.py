"""What a float is read as."""

from __future__ import annotations

import math

import pytest
from hypothesis import example, given
from hypothesis import strategies as st
from mugraph.verification.constants import LN_2, PI, Base, Constant, read


def exponents(value: float) -> dict[Base, float]:
    return {base: halves / 2 for base, halves in read(value).halves}


@pytest.mark.parametrize(
    ("value", "expected"),
    [
        (1.0, {}),
        (12.0, {2: 2, 3: 1}),
        (0.1, {2: -1, 5: -1}),
        (0.1 * 0.1, {2: -2, 5: -2}),
        (1e-12, {2: -12, 5: -12}),
        (1e-5 / 768, {2: -13, 3: -1, 5: -5}),
        (1 / 3, {3: -1}),
        (0.044715, {2: -6, 3: 1, 5: -5, 11: 1, 271: 1}),
        (1 / math.sqrt(64), {2: -3}),
        (1 / math.sqrt(80), {2: -2, 5: -0.5}),
        (128**-0.5, {2: -3.5}),
        (math.sqrt(2 / math.pi), {2: 0.5, PI: -0.5}),
        (1.5957691216057308, {2: 1.5, PI: -0.5}),
        (1 / math.log(2), {LN_2: -1}),
        (0.125 / math.log(2), {2: -3, LN_2: -1}),
        (math.log(10) / math.log(2) * math.log(2), {2: -50, 2592480341699211: 1}),
    ],
)  # fmt: skip
def test_constants_are_read_as_what_they_were_rounded_from(value: float, expected: dict[Base, float]) -> None:
    assert exponents(value) == expected


def test_of_no_number() -> None:
    assert read(0.0) == Constant(0, ())
    for value in (math.inf, -math.inf, math.nan):
        with pytest.raises(ValueError, match="is no number"):
            read(value)


@given(st.floats(allow_nan=False, allow_infinity=False).filter(bool))
@example(1.4924822854889103e308)
def test_what_is_read_is_the_number_itself(value: float) -> None:
    """To a few units in the last place, whatever was read."""
    found = read(value)
    known = {PI: math.pi, LN_2: math.log(2)}
    logarithm = sum(
        halves / 2 * math.log(known[base] if isinstance(base, str) else base) for base, halves in found.halves
    )
    assert found.sign == math.copysign(1, value)
    assert logarithm == pytest.approx(math.log(abs(value)), abs=1e-11)


def test_a_fraction_is_read_though_a_simpler_one_on_the_way_has_larger_odd_parts() -> None:
    """91749/31 = 65535/31 * 7/5, the weight of a loop over 65,535 elements at a smaller size."""
    assert read(91749 / 31) == read(65535 / 31 * 1.4)
    assert dict(read(91749 / 31).halves) == {3: 2, 7: 2, 17: 2, 257: 2, 31: -2}
