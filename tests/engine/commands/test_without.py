"""Optimisations of verified μGraphs that are left out: what may be said, and what is known by it."""

from __future__ import annotations

import pytest
from mugraph.commands.common import WrongUsage
from mugraph.commands.setting_options import allowed
from mugraph.options import Options
from mugraph.protocol.setting_kinds import SomeOf
from mugraph.protocol.settings import EngineSettings
from mugraph.worker.answers import wrong_setting


def test_some_of_them_with_commas_between() -> None:
    assert allowed("without", "") == ""
    assert Options(without="memory, order,").left_out == {"memory", "order"}
    assert Options().left_out == frozenset()


@pytest.mark.parametrize("wrong", ["memry", "memory order", "memory,,threads,x", 3])
def test_another_is_named(wrong: object) -> None:
    with pytest.raises(WrongUsage, match="it must be some of layouts, threads, order, memory"):
        allowed("without", wrong)
    with pytest.raises(ValueError, match="must be some of"):
        SomeOf(("layouts", "threads", "order", "memory")).read(wrong)


def test_a_client_that_says_another_is_told() -> None:
    said = wrong_setting(EngineSettings(without="everything"))
    assert said == "without is some of layouts, threads, order, memory, with commas between them, not 'everything'"


def test_results_without_them_are_filed_apart() -> None:
    usual, without = str(Options().bounds), str(Options(without="order,memory").bounds)
    assert usual != without
    assert without.endswith("without memory and order")
