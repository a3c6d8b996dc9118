"""Every mutant of every hand-built graph is rejected, unless it is the same function in float64 too."""

from __future__ import annotations

import numpy as np
import pytest
from mugraph.ir.block import BlockGraph
from mugraph.ir.program import TensorProgram
from mugraph.ir.transforms.resizing import resize, resize_block
from mugraph.verification.arithmetic import FloatArithmetic
from mugraph.verification.evaluate import Malformed, evaluate_program
from mugraph.verification.execute import execute_block
from mugraph.verification.sizes import assignments, grid_axes
from mugraph.verification.verifier import verify_topology

from tests.engine.verification.graphs import CASES
from tests.engine.verification.mutants import mutants


def same_in_float64(program: TensorProgram, block: BlockGraph) -> bool:
    """At both scaled-down sizes, at positive inputs (so that square roots are real)."""
    grid = grid_axes(block)
    float64 = FloatArithmetic()
    generator = np.random.default_rng(0)
    for assignment in assignments(program, [(block, grid)]):
        small = resize(program, assignment.sizes)
        inputs = {t.name: generator.uniform(0.5, 1.5, (1, *t.shape(small.sizes))) for t in small.tensors}
        expected = evaluate_program(small, inputs, float64)
        try:
            schedule = assignment.schedule(block, grid)
            found = execute_block(resize_block(block, assignment.sizes), schedule, inputs, float64)
        except Malformed:
            return False
        # A change of eps by a factor of two moves the result by about 1e-6 of itself.
        if not all(np.allclose(found[name], value, rtol=1e-9, atol=0) for name, value in expected.items()):
            return False
    return True


@pytest.mark.parametrize("name", CASES)
def test_mutants_are_killed(name: str) -> None:
    case = CASES[name]()
    killed = 0
    for what, mutant in mutants(case.block):
        verdict = verify_topology(case.program, mutant, seed=1)
        if verdict.passed:
            assert same_in_float64(case.program, mutant), f"{what}: accepted, and it is another function"
        else:
            assert verdict.reason
            assert verdict.bound is None
            killed += 1
    assert killed >= 8


def test_figures_say_different_by_value_not_only_by_form() -> None:
    """Mutants that are well formed are told apart by their values."""
    reasons = [
        verify_topology(case.program, mutant, seed=2).reason or ""
        for case in (make() for make in CASES.values())
        for _, mutant in mutants(case.block)
    ]
    assert sum("differs from the program's" in reason for reason in reasons) >= 60
