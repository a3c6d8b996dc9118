"""Random small einsum programs: every topology found computes the program, in float64, tile by tile."""

from __future__ import annotations

import numpy as np
import pytest
from mugraph.search import Limits, NotSearchable, Search

from tests.engine.search.random_programs import CHUNKS, PER_CHUNK, programs
from tests.support.tile_evaluator import check_axes, evaluate_block, evaluate_program, random_inputs, small_schedule


@pytest.mark.parametrize("chunk", range(CHUNKS))
def test_every_topology_of_random_programs_is_right(chunk: int) -> None:
    searched = checked = loops = 0
    for number, program in enumerate(programs()[chunk * PER_CHUNK : (chunk + 1) * PER_CHUNK]):
        inputs = random_inputs(program, number)
        with np.errstate(over="ignore"):
            expected = evaluate_program(program, inputs)
        if not np.isfinite(expected).all():
            continue
        search = Search(program, Limits(seconds=4.0, max_topologies=8))
        try:
            blocks = [found.block for found in search.run()]
        except NotSearchable as refused:
            raise AssertionError(f"{program.name}: {refused}") from refused
        searched += 1
        assert blocks or search.stats.pruned.get("softmax"), f"{program.name}: nothing found"
        for block in blocks:
            check_axes(block)
            result = evaluate_block(block, small_schedule(block), inputs)
            np.testing.assert_allclose(result, expected, rtol=1e-7, err_msg=f"{program.name}: {block.ops}")
            checked += 1
            loops += bool(block.loops)
    assert searched >= PER_CHUNK * 0.8
    assert checked > searched
    assert loops > 5
