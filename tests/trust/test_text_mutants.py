"""No text that computes something else is accepted: a part of the campaign over mutants of kernels' texts.

`python -m tests.trust.text_campaign` runs a thousand.
"""

from __future__ import annotations

import random
from collections.abc import Iterator

import pytest
from mugraph.verification.float_test import FloatTester

from tests.trust.text_campaign import MEMORY, SEED, checked, outcome
from tests.trust.text_judge import Judge
from tests.trust.text_mutations import KINDS, Mutant, mutants
from tests.trust.text_pool import entry, names

EACH = 2


@pytest.fixture(scope="module")
def judge() -> Iterator[Judge]:
    one = Judge()
    yield one
    one.close()


@pytest.fixture(scope="module")
def tester() -> Iterator[FloatTester]:
    with FloatTester() as one:
        yield one


def some(kind: str) -> list[tuple[str, Mutant]]:
    rng = random.Random(f"{SEED}/{kind}")
    order = rng.sample(names(), len(names()))
    found: list[tuple[str, Mutant]] = []
    for name in order:
        own = mutants(entry(name).source.standalone(), [kind]).get(kind, [])
        found += [(name, rng.choice(own))] if own else []
        if len(found) == EACH:
            break
    return found


@pytest.mark.parametrize("name", names())
def test_the_text_that_is_written_is_accepted(name: str) -> None:
    one = entry(name)
    assert checked(one, one.source.standalone()) == ("", "")


def _check(name: str, mutant: Mutant, judge: Judge, tester: FloatTester) -> str:
    found = outcome(name, mutant, judge, tester)
    said = f"{name}: {mutant.what}: {found.truth}, {found.check}: {found.reason}"
    if found.truth == "equal":
        assert not found.check or found.check in MEMORY, said
    else:
        assert found.check, said
    return found.check


@pytest.mark.parametrize("kind", KINDS)
def test_mutants(kind: str, judge: Judge, tester: FloatTester) -> None:
    for name, mutant in some(kind):
        _check(name, mutant, judge, tester)


def test_each_mutant_of_a_launch_of_several_kernels(judge: Judge, tester: FloatTester) -> None:
    """Which block is of which kernel is rejected by the text, before any number is looked at on a device."""
    name = "beside projections"
    found = mutants(entry(name).source.standalone(), ["side by side"])["side by side"]
    assert {"a bound +1", "a bound -1", "a part less", "parts exchanged"} <= {one.what for one in found}
    for mutant in found:
        assert _check(name, mutant, judge, tester) not in ("", "float test"), mutant.what
