"""Texts of values that have no literal: equal for what is equal and of one type, and for nothing else."""

from __future__ import annotations

import copy
import enum
import math
from decimal import Decimal
from fractions import Fraction
from itertools import combinations

import numpy as np
import pytest
import torch
from mugraph.edit.module.conditions import CONDITIONS
from mugraph.ir.spelled import spelled


class Way(enum.Enum):
    FIRST = 1
    OTHER = 2


class Level(enum.IntEnum):
    FIRST = 1


class Width(float):
    pass


VALUES = [
    np.float64(0.1), np.float32(0.1), np.float16(0.1), np.float64(0.2), np.int64(1), np.int32(1), np.bool_(True), 1.0,
    np.array(0.1), np.array([0.1]), np.array([[0.1]]), np.arange(40), np.arange(40) + 1, np.arange(40.0),
    np.arange(40).reshape(4, 10), math.inf, -math.inf, math.nan, Way.FIRST, Way.OTHER, Level.FIRST, Width(0.1),
    Fraction(1, 3), Decimal("0.1"), 1j, b"1", {1, 2}, {1, 3}, frozenset({1, 2}), slice(1, 2), slice(1, 3), range(1, 2),
    (slice(1, 2), ...), [slice(1, 2), ...], {"a": Way.FIRST}, {"a": Way.OTHER}, torch.channels_last, torch.float16,
]  # fmt: skip


def test_no_two_are_alike() -> None:
    assert all(spelled(one) is not None for one in VALUES)
    alike = [(one, other) for one, other in combinations(VALUES, 2) if spelled(one) == spelled(other)]
    assert alike == []


@pytest.mark.parametrize("value", VALUES, ids=repr)
def test_a_copy_is_alike_in_kernel_modules_as_well(value: object) -> None:
    shared: dict[str, object] = {"sha256": __import__("hashlib").sha256, "Any": object}
    text = CONDITIONS[CONDITIONS.index("def _spelled") :]
    exec("from __future__ import annotations\n" + text, shared)
    asked = shared["_spelled"]
    assert callable(asked)
    assert asked(copy.deepcopy(value)) == spelled(value)


@pytest.mark.parametrize("value", [torch.ones(2), torch.nn.Identity(), object(), [torch.ones(1)], np.array([object()])])
def test_of_others_there_is_none(value: object) -> None:
    assert spelled(value) is None
