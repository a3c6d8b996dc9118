"""Integers of many blocks compared block by block are compared as by NumPy."""

from __future__ import annotations

import operator
from collections.abc import Callable
from typing import Any

import numpy as np
import pytest
from mugraph.triton_text.compared import compared
from numpy.typing import NDArray

BLOCKS, ROWS, COLUMNS = 40, 32, 48


def causal(tile: int, by: int = 0) -> tuple[NDArray[np.int64], NDArray[np.int64]]:
    """Rows of each block beside columns that are the same for all."""
    rows = np.arange(BLOCKS)[:, None, None] * tile + np.arange(ROWS)[None, :, None]
    return rows, by + np.arange(COLUMNS)[None, None, :]


def drawn(seed: int, spread: int) -> tuple[NDArray[np.int64], NDArray[np.int64]]:
    rng = np.random.default_rng(seed)
    near = rng.integers(-3, 4, (BLOCKS, ROWS, 1)) * spread
    return near + rng.integers(0, 3, (BLOCKS, ROWS, 1)), rng.integers(-2, 3, (BLOCKS, 1, COLUMNS))


CASES = {
    "most below": causal(1, 64),
    "few on the diagonal": causal(32, 600),
    "one block alone": causal(64, 64 * 7),
    "many on the diagonal": causal(1, 20),
    "drawn, apart": drawn(0, 50),
    "drawn, near": drawn(1, 1),
    "few elements": (causal(16)[0][:2, :3], causal(16)[1][..., :2]),
    "one block": (causal(16)[0][3:4], causal(16)[1]),
}


@pytest.mark.parametrize("holds", [operator.lt, operator.le, operator.gt, operator.ge])
@pytest.mark.parametrize("name", CASES)
def test_it_is_as_by_numpy(name: str, holds: Callable[[Any, Any], Any]) -> None:
    for x, y in (CASES[name], CASES[name][::-1]):
        found, wanted = compared(holds, x, y), holds(x, y)
        assert found.shape == wanted.shape
        assert found.dtype == wanted.dtype
        assert np.array_equal(found, wanted)


def test_blocks_that_are_alike_throughout_are_not_looked_at() -> None:
    looked: list[int] = []

    def holds(x: Any, y: Any) -> Any:
        looked.append(np.broadcast(x, y).size)
        return operator.le(x, y)

    x, y = CASES["few on the diagonal"]
    assert np.array_equal(compared(holds, x, y), x <= y)
    assert max(looked) <= 4 * ROWS * COLUMNS
