"""Kernels of places: loops that a window begins and ends, comparisons of whole numbers, and texts that are off by one,
which the check of a text rejects."""

from __future__ import annotations

from collections.abc import Callable
from functools import cache

import pytest
import torch
import torch.nn.functional as F
from mugraph.codegen.aot import compile_for
from mugraph.codegen.lower import lower_kernels
from mugraph.ir.block import BlockGraph, Schedule
from mugraph.ir.kernel import KernelSource
from mugraph.ir.program import TensorProgram
from mugraph.search.run import Search
from mugraph.search.schedules.ends import ends
from mugraph.verification.verifier import verify_topology

from tests.engine.codegen.changed_text import passes
from tests.engine.ops.harness import check, randn

T, WINDOW = 80, 24


def _attention(q: torch.Tensor, k: torch.Tensor, v: torch.Tensor) -> torch.Tensor:
    i = torch.arange(T)
    seen = (i[:, None] >= i[None, :]) & (i[:, None] - i[None, :] < WINDOW)
    return F.scaled_dot_product_attention(q, k, v, attn_mask=seen)


def _loss(x: torch.Tensor, target: torch.Tensor) -> torch.Tensor:
    """Without the logarithm, for which a text is only tested as a whole."""
    places = torch.arange(40)
    return (x * (target[:, None] == places)).sum(1) + (x * (places < target[:, None])).sum(1)


@cache
def _window() -> tuple[TensorProgram, BlockGraph]:
    program = check(_attention, {name: randn(T, 16, seed=seed) for seed, name in enumerate("qkv")}).program
    blocks = (found.block for found in Search(program).run())
    return program, next(b for b in blocks if b.loop_axes == ("t",) and verify_topology(program, b).passed)


@cache
def _lowered() -> tuple[TensorProgram, KernelSource]:
    program, block = _window()
    schedule = Schedule((("s", 16),), {"t": 16})
    return program, lower_kernels([(block, schedule)], outputs=["out"], program=program)


@cache
def _classes() -> tuple[TensorProgram, KernelSource]:
    inputs = {"x": randn(40, 40), "target": torch.arange(40)}
    program = check(_loss, inputs).program
    block = next(found.block for found in Search(program).run() if verify_topology(program, found.block).passed)
    (rows,) = block.outputs[0].axes
    schedule = Schedule(((rows, 8),), dict.fromkeys(block.loop_axes, 16))
    return program, lower_kernels([(block, schedule)], outputs=["out"], program=program)


def test_a_loop_over_a_window() -> None:
    _, source = _lowered()
    first = f"tl.maximum(0, (pid_s * BLOCK_S - {WINDOW - 1}) // BLOCK_T) * BLOCK_T"
    assert f"for t0 in range({first}, tl.minimum(T, (pid_s + 1) * BLOCK_S), BLOCK_T):" in source.jit
    assert passes(_lowered())
    assert ".target sm_90" in compile_for(source, 90).ptx


def test_the_estimate_knows_where_it_begins() -> None:
    _, block = _window()
    end = ends(block)["t"]
    assert end.first is not None
    assert end.last is not None
    # 5 blocks of 16 queries; of 5 tiles of keys they see 1, 2, 3, 3 and 3
    mean, longest = end.shares(Schedule((("s", 16),), {"t": 16}), block.sizes)
    assert mean == (1 + 2 + 3 + 3 + 3) / 25
    assert longest == 3 / 5


TEXTS: dict[str, tuple[Callable[[], tuple[TensorProgram, KernelSource]], str, str]] = {
    "the mask off by one": (_lowered, "offs_t[None, :] <= offs_s[:, None]", "offs_t[None, :] <= offs_s[:, None] + 1"),
    "< for <=": (_lowered, "offs_t[None, :] <= offs_s[:, None]", "offs_t[None, :] < offs_s[:, None]"),
    "a window one too short": (_lowered, f"+ {WINDOW - 1}", f"+ {WINDOW - 2}"),
    "a window one too long": (_lowered, f"+ {WINDOW - 1}", f"+ {WINDOW}"),
    "a loop that begins a tile late": (_lowered, "// BLOCK_T) * BLOCK_T", "// BLOCK_T + 1) * BLOCK_T"),
    "a loop that ends a tile early": (_lowered, "(pid_s + 1) * BLOCK_S", "pid_s * BLOCK_S"),
    "the class after it": (_classes, "== offs_", "== 1 + offs_"),
    "<= for <": (_classes, "> offs_", ">= offs_"),
}


@pytest.mark.parametrize("name", TEXTS)
def test_texts_that_are_off_by_one_are_rejected(name: str) -> None:
    made, old, new = TEXTS[name]
    assert passes(made())
    assert not passes(made(), old, new)


def test_the_wrong_axis_is_rejected_in_a_text() -> None:
    """Rows and classes are equally many."""
    program, source = _classes()
    (rows,) = program.outputs[next(iter(program.outputs))].axes
    (classes,) = (axis for axis in program.sizes if axis != rows)
    assert f"offs_{classes}[None, :]" in source.jit
    old = next(line for line in source.jit.splitlines() if f"== offs_{classes}[None, :]" in line)
    new = old.replace(f"== offs_{classes}[None, :]", f"== offs_{rows}[:, None]")
    assert not passes(_classes(), old, new)
