"""Runs single kernels in the reader, on integers, as Triton's interpreter does.

Integers are elements of the fields that are what they are: a kernel that adds, multiplies and moves whole numbers gives
the same numbers over the fields as in floating point.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import cast

import numpy as np
from mugraph.triton_text.inputs import Inputs
from mugraph.triton_text.launcher import LauncherRun
from mugraph.triton_text.memory import Memory
from mugraph.triton_text.reals import Reals
from mugraph.triton_text.running import World
from mugraph.triton_text.source import read_module
from mugraph.triton_text.tensors import HostTensor, dense, extent_of
from mugraph.verification.field import FieldArithmetic, P
from numpy.typing import NDArray

HEAD = "import torch\nimport triton\nimport triton.language as tl\n\n\n"


@dataclass
class Numbered:
    """Inputs that hold given numbers."""

    values: NDArray[np.int64]

    def at(self, numbers: NDArray[np.int64]) -> tuple[NDArray[np.int64], NDArray[np.int64] | None]:
        return self.values[numbers] % P, None

    def block(self, starts: NDArray[np.int64], length: int) -> tuple[NDArray[np.int64], NDArray[np.int64] | None]:
        return self.at(starts[..., None] + np.arange(length))


def world_of(*numbers: NDArray[np.int64]) -> World:
    """One draw of the fields, in which inputs hold these numbers, one after the other."""
    reals = Reals(FieldArithmetic(np.random.default_rng(3), 1, with_q=False))
    flat = [one.reshape(-1) for one in numbers]
    return World(reals, cast(Inputs, Numbered(np.concatenate([*flat, np.zeros(1, np.int64)]))))


def launched(
    text: str, inputs: Sequence[NDArray[np.int64]], strides: Sequence[tuple[int, ...]] = ()
) -> NDArray[np.int64]:
    """What the first function that begins with `launch` returns, as whole numbers around zero."""
    world = world_of(*inputs)
    run = LauncherRun(world)
    module = read_module(HEAD + text)
    given: list[HostTensor] = []
    start = 0
    for number, one in enumerate(inputs):
        own = strides[number] if strides else dense(one.shape)
        memory = Memory(f"x{number}", extent_of(one.shape, own), "float32", one.shape, own, source=start)
        given.append(HostTensor(memory, one.shape, own))
        start += one.size
    name = next(name for name in module.functions if name.startswith("launch"))
    result = run.evaluator.run(module.functions[name], given, {})
    found = world.read(result.memory, np.arange(result.memory.size), len(world.steps))
    assert found.state is None
    return np.where(found.p > P // 2, found.p - P, found.p).reshape(result.shape)
