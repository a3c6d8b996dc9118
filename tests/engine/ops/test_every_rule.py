"""Every call that has a rule, with random shapes and arguments: lowered, it computes in float64 what PyTorch does."""

from __future__ import annotations

import random
from collections import Counter

import pytest
import torch
from mugraph.ops.algebra.refusals import NotLowerable
from mugraph.trace.regions.replay import replay
from mugraph.units.lower import lower

from tests.engine.ops.harness import evaluate, parts, well_formed
from tests.engine.ops.rule_draws import Rng
from tests.engine.ops.rule_programs import TARGETS, rule_program

DRAWS = 12

REFUSALS = (
    "the sizes of a view", "a norm that is not Euclidean", "a softmax of one number", "a variance of too few",
    "an output is an input as it is", "a mean in ceil_mode", "a mean that leaves out the places",
    "a maximum over no element", "adaptive pooling whose windows differ",
)  # fmt: skip


def outcome(target: str, rng: Rng, *, whole: bool = True) -> str:
    """whole=False: of a part of its result, or of its halves exchanged"""
    program = rule_program(target, rng, whole=whole)
    if isinstance(program, str):
        return program
    env, last = program.tensors, program.output
    try:
        lowered = lower(program.calls, program.values, program.live_ins, [last], "rule")
    except NotLowerable as refusal:
        if whole and not str(refusal).startswith(REFUSALS):
            raise
        return str(refusal)
    well_formed(lowered)
    kept = {number for number, t in env.items() if not t.is_floating_point()}
    wide = {number: t if number in kept | {*program.constants} else t.double() for number, t in env.items()}
    expected = replay(program.calls, wide)[last].double()
    (got,) = evaluate(lowered.program, parts(lowered, wide)).values()
    what, got = f"{target} {program.drawn}", got.reshape(expected.shape)
    torch.testing.assert_close(got, expected, rtol=1e-5, atol=1e-6, msg=lambda text: f"{what}: {text}")
    return "equal"


@pytest.mark.parametrize("target", TARGETS)
def test_part_of_a_result(target: str) -> None:
    """A part of a result is that part of the whole result: a norm's statistics are those of whole rows."""
    rng = random.Random(f"part of {target}")
    seen = Counter(outcome(target, rng, whole=False) for _ in range(DRAWS))
    assert seen["equal"] or set(seen) <= {"no part", "a part of a mask is outside the fragment"}, seen


@pytest.mark.parametrize("target", TARGETS)
def test_rule(target: str) -> None:
    rng = random.Random(target)
    seen = Counter(outcome(target, rng) for _ in range(DRAWS))
    assert seen["equal"] >= 2, seen
