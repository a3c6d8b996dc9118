"""In Triton's interpreter places and masks are computed once, and are those of each launch all the same."""

from __future__ import annotations

import json
from functools import cache
from pathlib import Path
from typing import Any

import pytest

from tests.support.forks import run_interpreted

CHILD = Path(__file__).parent / "interpreter_places_child.py"


@cache
def said() -> dict[str, Any]:
    return json.loads(run_interpreted(CHILD).splitlines()[-1])


@pytest.mark.parametrize(("kernel", "launches"), [("shifted", 5), ("turned", 4), ("gathered", 3)])
def test_results_are_those_of_each_launch(kernel: str, launches: int) -> None:
    """With other tensors, other sizes, other numbers, and what was loaded among the places."""
    assert said()["right"][kernel] == [True] * launches


def test_a_launch_with_the_same_whole_numbers_computes_no_place_again() -> None:
    first, again, smaller, otherwise, later = said()["computed"]
    assert again == later == 3 * 2  # the products of numbers alone: one for each row and pass of the loop
    assert smaller > 2 * 1
    assert again < otherwise < first
