"""What Triton's interpreter does to the language for a launch it does once."""

from __future__ import annotations

import json
from pathlib import Path

from tests.support.forks import run_interpreted

CHILD = Path(__file__).parent / "interpreter_speed_child.py"


def test_the_language_is_replaced_once_a_launch_and_is_its_own_after_it() -> None:
    said = json.loads(run_interpreted(CHILD).splitlines()[-1])
    assert said["close"] == [True] * said["launches"]
    assert said["restored"]
    # The kernel's own names, and those that functions of the language see; each of the five blocks calls nine of them.
    assert said["launches"] <= said["patched"] <= 3 * said["launches"]


def test_nothing_is_computed_for_assertions_that_are_not_made() -> None:
    """That integers do not overflow is seen in wider ones, and the kernel itself has none of those."""
    said = json.loads(run_interpreted(CHILD).splitlines()[-1])
    assert said["close"] == [True] * said["launches"]
    assert said["widened"] == 0
