"""A root of a negative number, where the program takes none, is no way to compute it, whatever the fields say."""

from __future__ import annotations

from mugraph.ir.block import BlockGraph
from mugraph.ir.ops import Kind
from mugraph.ir.program import TensorProgram
from mugraph.verification.verifier import verify_topology

from tests.engine.verification.graphs import Builder, Case, tensor

SIZES = {"b": 16, "h": 64}
X, Y, Z = tensor("x", "b h", SIZES), tensor("y", "b h", SIZES), tensor("z", "b", SIZES)


def case(program: Builder, block: Builder) -> Case:
    inputs = tuple(t for t in (X, Y) if any(op.tensor == t.name for op in program.ops))
    block.store("out", Z)
    return Case(
        TensorProgram("roots", SIZES, inputs, tuple(program.ops), {"out": Z}),
        BlockGraph("roots", SIZES, (*inputs, Z), tuple(block.ops)),
    )


def length(split: bool) -> Builder:
    """sqrt(s * s), or sqrt(s) * sqrt(s), of the rows' sums."""
    b = Builder()
    b.load("x", X), b.reduce("s", Kind.SUM, "x", over="h")
    if split:
        b.ew("root", Kind.SQRT, "s"), b.ew("out", Kind.MUL, "root", "root")
    else:
        b.ew("ss", Kind.MUL, "s", "s"), b.ew("out", Kind.SQRT, "ss")
    return b


def geometric(split: bool) -> Builder:
    """The sum of sqrt(x) * sqrt(y), or of sqrt(x * y)."""
    b = Builder()
    b.load("x", X), b.load("y", Y)
    if split:
        b.ew("u", Kind.SQRT, "x"), b.ew("v", Kind.SQRT, "y"), b.ew("uv", Kind.MUL, "u", "v")
    else:
        b.ew("xy", Kind.MUL, "x", "y"), b.ew("uv", Kind.SQRT, "xy")
    b.reduce("out", Kind.SUM, "uv", over="h")
    return b


def test_the_square_of_a_root_is_not_the_root_of_a_square() -> None:
    right = case(length(split=False), length(split=False))
    assert verify_topology(right.program, right.block).passed
    wrong = case(length(split=False), length(split=True))
    verdict = verify_topology(wrong.program, wrong.block)
    assert not verdict.passed
    assert verdict.reason == "z takes the root of a negative number where the program does not"


def test_fewer_roots_than_the_program_takes_are_right() -> None:
    right = case(geometric(split=True), geometric(split=False))
    assert verify_topology(right.program, right.block).passed
