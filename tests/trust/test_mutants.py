"""No mutant that is wrong is accepted: a seeded part of the campaign, of every kind and over all programs.

With MUGRAPH_TRUST=all every mutant runs, thousands (`python -m tests.trust.campaign` prints them as a table).
"""

from __future__ import annotations

import os
import random
from collections import defaultdict
from functools import cache

import pytest

from tests.trust.campaign import SEED, Case, Outcome, cases, outcome
from tests.trust.explanations import explanation
from tests.trust.mutations import MUTATIONS
from tests.trust.pool import names

EACH = 16
"""Mutants of each kind in CI."""


@cache
def every_case() -> dict[str, list[Case]]:
    """Kind -> its mutants, one a program in turn, shuffled."""
    by_program: dict[str, dict[str, list[Case]]] = defaultdict(lambda: defaultdict(list))
    for case in cases():
        by_program[case.kind][case.program].append(case)
    found: dict[str, list[Case]] = {}
    for kind, programs in by_program.items():
        rng = random.Random(f"{SEED}/{kind}")
        queues = list(programs.values())
        rng.shuffle(queues)
        for queue in queues:
            rng.shuffle(queue)
        found[kind] = [queue[turn] for turn in range(max(map(len, queues))) for queue in queues if turn < len(queue)]
    return found


def outcomes(kind: str) -> list[Outcome]:
    chosen = every_case()[kind]
    if os.environ.get("MUGRAPH_TRUST") != "all":
        chosen = chosen[:EACH]
    return [found for found in map(outcome, chosen) if found is not None]


def test_the_campaign_is_of_thousands_over_all_programs() -> None:
    every = [case for kind in every_case().values() for case in kind]
    assert len(every) >= 5_500  # a few of them change nothing
    assert {case.program for case in every} == set(names())
    assert set(every_case()) == set(MUTATIONS)


@pytest.mark.parametrize("kind", MUTATIONS)
def test_nothing_wrong_is_accepted(kind: str) -> None:
    found = outcomes(kind)
    assert found
    for one in found:
        assert one.verdict != "raised", one
        assert one.name != "wrong, accepted", one
        assert one.name != "right, rejected" or explanation(kind, one.reason), one
