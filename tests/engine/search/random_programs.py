"""Tensor programs put together at random."""

from __future__ import annotations

import itertools
import random
from dataclasses import replace
from functools import cache

from mugraph.ir.ops import Kind, Op
from mugraph.ir.program import TensorProgram

from tests.engine.search.workloads import Builder

AXES = "abcd"
CHUNKS = 8
PER_CHUNK = 40


def random_program(seed: int) -> TensorProgram:
    """Two to seven operators over two to four axes of 4; the last value is the output."""
    rng = random.Random(seed)
    b = Builder("random", **dict.fromkeys(AXES[: rng.randint(2, 4)], 4))
    names = list(b.sizes)
    values: list[str] = []
    axes: dict[str, tuple[str, ...]] = {}

    def keep(name: str) -> None:
        values.append(name)
        axes[name] = b.ops[-1].axes

    for i in range(rng.randint(2, 4)):
        keep(b.input(f"t{i}", *rng.sample(names, rng.randint(1, min(3, len(names))))))
    if rng.random() < 0.3:
        keep(b.const("c", 0.75))
    exps = 0
    for i in range(rng.randint(2, 7)):
        x, y = rng.choice(values[-3:]), rng.choice(values)
        shared = sorted(set(axes[x]) & set(axes[y]))
        kind = rng.choice(
            [Kind.ADD, Kind.MUL, Kind.MUL, Kind.DIV, Kind.SQRT, Kind.EXP, Kind.UNARY, Kind.SUM, Kind.DOT, Kind.DOT]
        )
        if kind is Kind.DOT and shared:
            b.dot(f"v{i}", x, y, *rng.sample(shared, 1 if rng.random() < 0.8 else len(shared)))
        elif kind is Kind.SUM and axes[x]:
            b.sum(f"v{i}", x, rng.choice(axes[x]))
        elif kind is Kind.EXP and not exps:
            exps += 1
            b.exp(f"v{i}", x)
        elif kind in (Kind.ADD, Kind.DIV):
            b.elementwise(kind, f"v{i}", x, y)
        elif kind is Kind.SQRT:
            b.sqrt(f"v{i}", x)
        elif kind is Kind.UNARY:
            b.unary(rng.choice(["silu", "sigmoid", "tanh"]), f"v{i}", x)
        else:
            b.mul(f"v{i}", x, y)
        keep(f"v{i}")
    output = values[-1]
    return b.program(output, *axes[output])


def live(program: TensorProgram) -> tuple[Op, ...]:
    """Operators the output depends on."""
    needed = set(program.outputs)
    for op in reversed(program.ops):
        if op.name in needed:
            needed |= set(op.inputs)
    return tuple(op for op in program.ops if op.name in needed)


def shape_of(program: TensorProgram) -> tuple[object, ...]:
    """What two programs share that differ in names only."""
    numbers = {op.name: i for i, op in enumerate(program.ops)}
    axes: dict[str, int] = {}
    for op in program.ops:
        for axis in op.axes if op.kind is not Kind.LOAD else program.tensor(op.tensor).axes:
            axes.setdefault(axis, len(axes))
    return tuple(
        (op.kind, tuple(numbers[i] for i in op.inputs), frozenset(axes[a] for a in op.axes),
         frozenset(axes[a] for a in op.over), op.fn)
        for op in program.ops
    )  # fmt: skip


@cache
def programs() -> tuple[TensorProgram, ...]:
    """No two alike, of at least two operators each, all of use."""
    found: dict[tuple[object, ...], TensorProgram] = {}
    for seed in itertools.count():
        program = random_program(seed)
        ops = live(program)
        used = {op.tensor for op in ops if op.kind is Kind.LOAD}
        tensors = tuple(tensor for tensor in program.tensors if tensor.name in used)
        program = replace(program, name=f"random_{seed}", tensors=tensors, ops=ops)
        if len(program.compute_ops) > 1:
            found.setdefault(shape_of(program), program)
        if len(found) == CHUNKS * PER_CHUNK:
            return tuple(found.values())
    raise AssertionError("unreachable")
