"""Kernels of attention under two masks, in rows of which these hide all: they give what PyTorch gives there."""

from __future__ import annotations

import os
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path

import pytest
import torch
import torch.nn.functional as F
from mugraph.codegen.lower import lower_kernels
from mugraph.search import Limits, schedules, topologies
from mugraph.targets import TARGETS
from mugraph.verification.conditioning import loses_digits, verified
from mugraph.verification.verifier import verify_topology

from tests.engine.ops.harness import lower_region, randn, record

TARGET = TARGETS["h200"]
LOW = -1e30
Q, K, V = randn(2, 2, 32, 16), randn(2, 2, 32, 16, seed=1), randn(2, 2, 32, 16, seed=2)
SEEN = torch.ones(2, 32, dtype=torch.bool)
SEEN[0, :5] = False  # causal masks leave the first five rows nothing
SEEN[1, -7:] = False
PADDING = (1.0 - SEEN[:, None, None, :].float()) * LOW

Made = Callable[..., torch.Tensor]


def causal() -> torch.Tensor:
    return torch.ones(32, 32, dtype=torch.bool).tril()


def both_seen(q: torch.Tensor, k: torch.Tensor, v: torch.Tensor, seen: torch.Tensor) -> torch.Tensor:
    return F.scaled_dot_product_attention(q, k, v, attn_mask=causal() & seen)


def either_hidden(q: torch.Tensor, k: torch.Tensor, v: torch.Tensor, padding: torch.Tensor) -> torch.Tensor:
    scores = torch.where(causal(), q @ k.transpose(-1, -2) * 0.25, LOW)
    return F.softmax(scores + padding, dim=-1) @ v


def by_thousands(q: torch.Tensor, k: torch.Tensor, v: torch.Tensor, mask: torch.Tensor) -> torch.Tensor:
    extended = (1.0 - mask[:, None, None, :]) * -10000.0
    return F.softmax(q @ k.transpose(-1, -2) / 4 + extended, dim=-1) @ v


CASES: dict[str, tuple[Made, dict[str, torch.Tensor]]] = {
    "both_seen": (both_seen, {"q": Q, "k": K, "v": V, "seen": SEEN[:, None, None, :]}),
    "either_hidden": (either_hidden, {"q": Q, "k": K, "v": V, "padding": PADDING}),
    "by_thousands": (by_thousands, {"q": Q, "k": K, "v": V, "mask": SEEN.float()}),
    "of_nothing": (by_thousands, {"q": Q, "k": K, "v": V, "mask": torch.zeros(2, 32)}),
}


@pytest.mark.parametrize("name", CASES)
def test_logits_of_thousands_lose_no_digits(name: str) -> None:
    """Whatever is drawn: exponentials of all of a row may be too small for float64, which is no loss of the graph's."""
    program = lower_region(record(*CASES[name])).program
    block = next(one.block for one in topologies(program, Limits(12)) if verify_topology(program, one.block).passed)
    assert [why for seed in range(60) if (why := loses_digits(program, [block], seed))] == []


def test_rows_of_which_all_is_hidden(tmp_path: Path) -> None:
    for name, (function, tensors) in CASES.items():
        program = lower_region(record(function, tensors)).program
        block = next(one.block for one in topologies(program, Limits(12)) if verified(program, [one.block]).passed)
        source = lower_kernels([(block, schedules(block, TARGET)[0].schedule)], outputs=["out"], program=program)
        (tmp_path / f"{name}.py").write_text(source.standalone())
        arguments = [tensors[tensor.source or tensor.name] for tensor in source.inputs]
        torch.save((f"launch_{source.name}", arguments), tmp_path / f"{name}.pt")
    command = [sys.executable, "-W", "ignore", "-m", "tests.engine.codegen.padded_child", str(tmp_path)]
    subprocess.run(command, env={**os.environ, "TRITON_INTERPRET": "1"}, check=True, timeout=240)
    for name, (function, tensors) in CASES.items():
        expected = function(**tensors)
        assert expected.isfinite().all()
        result = torch.load(tmp_path / f"{name}.out").reshape(expected.shape)
        # Of numbers of ten thousand a float32 has three digits after the point.
        torch.testing.assert_close(result, expected, rtol=1e-4, atol=5e-3 if "hidden" not in name else 1e-4, msg=name)
