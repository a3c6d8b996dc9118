"""Tensors of more elements than 32 bits number: offsets have 64 bits there, and nowhere else."""

from __future__ import annotations

import os
import subprocess
import sys
from dataclasses import replace
from pathlib import Path

import pytest
from mugraph.codegen.aot import compile_for
from mugraph.codegen.lower import lower
from mugraph.ir.block import Schedule
from mugraph.ir.kernel import KernelSource
from mugraph.ir.program import TensorProgram
from mugraph.ir.text import parse_program
from mugraph.search import Limits, topologies
from mugraph.targets import TARGETS
from mugraph.triton_text.check import check_text
from mugraph.triton_text.verdict import TextVerdict

TARGET = TARGETS["h100"]
REACH = 1 << 31
WIDE = ".to(tl.int64)"
END = "tl.cast(N, tl.int64)"
TILES = Schedule((("n", 1 << 16),))
SQUARES = """\
program squares
  axes {axes}
  tensor x f32[{dims}]{strides}
  x[{dims}] = load(x)
  y[{dims}] = mul(x, x)
  output y -> y f32[{dims}]
"""
SUMS = """\
program sums
  axes b=2, n={size}
  tensor x f32[b, n]
  x[b, n] = load(x)
  s[b] = sum(x, over=n)
  output s -> s f32[b]
"""


def squares(size: int) -> TensorProgram:
    return parse_program(SQUARES.format(axes=f"n={size}", dims="n", strides=""))


def rows(apart: int) -> TensorProgram:
    return parse_program(SQUARES.format(axes="b=4, n=100", dims="b, n", strides=f" strides [{apart}, 1]"))


def lowered(program: TensorProgram, schedule: Schedule) -> KernelSource:
    """The first topology with such loops."""
    blocks = (one.block for one in topologies(program, Limits()))
    block = next(one for one in blocks if set(one.loop_axes) == set(schedule.loops))
    return lower(block, schedule)


def checked(program: TensorProgram, source: KernelSource, text: str) -> TextVerdict:
    """The addresses of all blocks, and no number: none of the memory is there."""
    inputs, outputs = ([tensor.name for tensor in tensors] for tensors in (source.inputs, source.outputs))
    return check_text(program, text, f"launch_{source.name}", inputs, outputs, seed=1, most=10)


@pytest.mark.parametrize("size", [REACH - 1000, REACH])
def test_within_reach_indices_have_32_bits(size: int) -> None:
    assert WIDE not in lowered(squares(size), TILES).jit


@pytest.mark.parametrize("size", [REACH + 1000, REACH + (1 << 20)])
def test_an_axis_beyond_reach(size: int) -> None:
    """The number of a block, times the elements of one, is beyond it as well."""
    source = lowered(squares(size), TILES)
    text = source.standalone()
    assert f"pid_n{WIDE} * BLOCK_N" in text
    assert checked(squares(size), source, text).passed
    # Converted once the product has wrapped around, as it was written before.
    late = text.replace(f"pid_n{WIDE}", "pid_n").replace("x_ptr + offs_n", f"x_ptr + offs_n{WIDE}")
    late = late.replace("y_ptr + offs_n", f"y_ptr + offs_n{WIDE}")
    found = checked(squares(size), source, late)
    assert (found.passed, found.check) == (False, "bounds")
    assert not checked(squares(size), source, text.replace(WIDE, "")).passed


def test_a_loop_beyond_reach() -> None:
    """An end between 2^31 and 2^32 has 32 bits and no sign: to Triton's loop it is less than 0."""
    program = parse_program(SUMS.format(size=REACH + (1 << 20)))
    source = lowered(program, Schedule((("b", 1),), {"n": 1 << 20}))
    text = source.standalone()
    assert f"in tl.range(0, {END}, BLOCK_N" in text
    assert checked(program, source, text).passed
    found = checked(program, source, text.replace(END, "N"))
    assert (found.passed, found.check) == (False, "bounds")
    if os.environ.get("TRITON_INTERPRET") != "1":
        short = lowered(program, Schedule((("b", 1),), {"n": 1 << 10}))
        ends_at_once = replace(short, jit=short.jit.replace(END, "N"))
        compiled, wrong = (compile_for(one, TARGET.capability).ptx for one in (short, ends_at_once))
        assert any("bra" in line for line in compiled.splitlines())
        assert not any("bra" in line for line in wrong.splitlines()), "Triton counts so far now"


@pytest.mark.parametrize("apart", [1 << 29, 1 << 30])
def test_rows_that_lie_far_apart(apart: int, tmp_path: Path) -> None:
    """Four rows of a hundred elements: in the interpreter, in a few pages of memory."""
    program = rows(apart)
    source = lowered(program, Schedule((("b", 2), ("n", 32))))
    assert (WIDE in source.jit) is (3 * apart + 99 >= REACH)
    assert checked(program, source, source.standalone()).passed
    if WIDE in source.jit:
        assert not checked(program, source, source.standalone().replace(WIDE, "")).passed
    module = tmp_path / "far.py"
    module.write_text(source.standalone())
    command = [sys.executable, "-m", "tests.engine.codegen.far_child", str(module), f"launch_{source.name}"]
    environment = {**os.environ, "TRITON_INTERPRET": "1"}
    found = subprocess.run(
        [*command, "4", "100", str(apart)], env=environment, capture_output=True, text=True, check=False, timeout=60
    )
    assert found.stdout.strip() == "True", found.stderr
