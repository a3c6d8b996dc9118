"""Runs a block graph as a thread block would, in float64 numpy: grid cells, loop iterations, tiles by slicing.

It follows the contract of `BlockGraph` and raises ContractBroken where a graph breaks it: a value that differs between
iterations used outside of its loop, a loop's result used inside of it, an accumulator outside of the loop nest.
"""

from __future__ import annotations

import itertools
from collections.abc import Mapping
from math import ceil

import numpy as np
from mugraph.ir.block import BlockGraph, Loop, Schedule
from mugraph.ir.ops import REDUCING, Kind, Op
from mugraph.ir.program import TensorProgram
from mugraph.ir.tensors import Tensor

from tests.support.meaning import Array, apply


class ContractBroken(AssertionError):
    pass


def spread(tensor: Tensor, array: Array, axes: list[str]) -> Array:
    """An array in the tensor's order, with all axes."""
    own = sorted(range(len(tensor.axes)), key=lambda i: axes.index(tensor.axes[i]))
    shape = [array.shape[tensor.axes.index(axis)] if axis in tensor.axes else 1 for axis in axes]
    return array.transpose(own).reshape(shape)


def random_inputs(program: TensorProgram, seed: int) -> dict[str, Array]:
    random = np.random.default_rng(seed)
    return {t.name: random.uniform(0.5, 1.5, [program.sizes[a] for a in t.axes]) for t in program.tensors}


def evaluate_program(program: TensorProgram, inputs: Mapping[str, Array]) -> Array:
    """The program's output with all axes, in sorted order."""
    axes = sorted(program.sizes)
    values: dict[str, Array] = {}
    for op in program.ops:
        if op.kind is Kind.LOAD:
            values[op.name] = spread(program.tensor(op.tensor), inputs[op.tensor], axes)
        elif op.kind is Kind.CONST:
            values[op.name] = np.full([1] * len(axes), op.value)
        else:
            values[op.name] = apply(op, axes, [values[i] for i in op.inputs], keepdims=True)
    (output,) = program.outputs
    return values[output]


def evaluate_block(block: BlockGraph, schedule: Schedule, inputs: Mapping[str, Array]) -> Array:
    """What the launched grid stores, with all axes in sorted order; NaN where nothing was stored."""
    axes = sorted(block.sizes)
    ops = {op.name: op for op in block.ops}
    (store,) = (op for op in block.ops if op.kind is Kind.STORE)
    full = {t.name: spread(t, inputs[t.name], axes) for t in block.inputs}
    result = np.full([block.sizes[a] if a in store.axes else 1 for a in axes], np.nan)
    around = dict(ancestors(block.loops, ()))
    grid = [[(axis, tile, i) for i in range(ceil(block.sizes[axis] / tile))] for axis, tile in schedule.grid]
    for cell in itertools.product(*grid):
        cuts = {axis: slice(i * tile, (i + 1) * tile) for axis, tile, i in cell}
        memo: dict[tuple[str, tuple[tuple[str, int], ...]], Array] = {}

        def value(name: str, iteration: Mapping[str, int], cuts=cuts, memo=memo) -> Array:
            key = (name, tuple(sorted(iteration.items())))
            if key not in memo:
                memo[key] = compute(ops[name], iteration, cuts)
            return memo[key]

        def compute(op: Op, iteration: Mapping[str, int], cuts: Mapping[str, slice], value=value) -> Array:
            if op.kind is Kind.CONST:
                return np.full([1] * len(axes), op.value)
            if op.kind is Kind.LOAD:
                index: list[slice] = []
                for axis in axes:
                    cut = cuts.get(axis, slice(None)) if axis in op.axes else slice(None)
                    if axis in op.axes and axis in schedule.loops:
                        if axis not in iteration:
                            raise ContractBroken(f"{op.name} is used outside of its loop over {axis}")
                        tile = schedule.loops[axis]
                        cut = slice(iteration[axis] * tile, (iteration[axis] + 1) * tile)
                    index.append(cut)
                return full[op.tensor][tuple(index)]
            if op.kind is Kind.ACCUM:
                (axis,) = op.over
                if axis in iteration:
                    raise ContractBroken(f"{op.name} is used inside of its loop over {axis}")
                outer = {a: i for a, i in iteration.items() if a in around[axis]}
                steps = ceil(block.sizes[axis] / schedule.loops[axis])
                parts = [value(op.inputs[0], {**outer, axis: i}) for i in range(steps)]
                return np.maximum.reduce(parts) if op.fn else sum(parts)
            return apply(op, axes, [value(i, iteration) for i in op.inputs], keepdims=True)

        target = tuple(cuts.get(axis, slice(None)) if axis in store.axes else slice(None) for axis in axes)
        result[target] = value(store.inputs[0], {})
    return result


def ancestors(loops: tuple[Loop, ...], above: tuple[str, ...]) -> list[tuple[str, tuple[str, ...]]]:
    found: list[tuple[str, tuple[str, ...]]] = []
    for loop in loops:
        found += [(loop.axis, above), *ancestors(loop.body, (*above, loop.axis))]
    return found


def small_schedule(block: BlockGraph, tile: int = 2) -> Schedule:
    """Two-wide tiles of every axis that may have them."""
    (store,) = (op for op in block.ops if op.kind is Kind.STORE)
    reduced = {axis for op in block.ops for axis in op.over}
    grid = tuple((axis, tile) for axis in store.axes if axis not in reduced)
    return Schedule(grid, dict.fromkeys(block.loop_axes, tile))


def check_axes(block: BlockGraph) -> None:
    """Every operator's axes follow from its operands', names are unique, inputs come before uses."""
    known: dict[str, set[str]] = {}
    for op in block.ops:
        assert op.name.isidentifier()
        assert op.name not in known
        inputs = [known[i] for i in op.inputs]
        if op.kind is Kind.LOAD:
            expected = set(block.tensor(op.tensor).axes)
        elif op.kind in REDUCING:
            expected = set().union(*inputs) - set(op.over)
        else:
            expected = set().union(*inputs)
        assert op.axes == tuple(sorted(expected)), op
        known[op.name] = expected
