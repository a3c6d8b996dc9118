"""In Triton's interpreter a column is added up with as few digits lost as on a GPU."""

from __future__ import annotations

import json
from pathlib import Path

from tests.support.forks import run_interpreted

CHILD = Path(__file__).parent / "interpreter_sums_child.py"


def test_columns_of_thousands_lose_no_more_digits_than_rows() -> None:
    """One number after the other they would be 1e-6 off."""
    errors = json.loads(run_interpreted(CHILD).splitlines()[-1])
    assert len(errors) == 4
    assert max(errors) < 1e-7, errors
