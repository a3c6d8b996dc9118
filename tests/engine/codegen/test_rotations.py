"""A rotated attention, of views of its inputs with steps and offsets, compiles for Ampere and Hopper."""

from __future__ import annotations

import os
from collections.abc import Callable

import pytest
import torch
from mugraph.codegen.aot import compile_for
from mugraph.codegen.lower import lower_kernels
from mugraph.search.run import topologies
from mugraph.search.schedules.sizes import schedules
from mugraph.targets import TARGETS

from tests.engine.ops.harness import lower_region, randn, record

pytestmark = pytest.mark.skipif(os.environ.get("TRITON_INTERPRET") == "1", reason="the interpreter compiles nothing")


def halves(x: torch.Tensor) -> torch.Tensor:
    return torch.cat((-x[..., 32:], x[..., :32]), dim=-1)


def neighbours(x: torch.Tensor) -> torch.Tensor:
    return torch.stack((-x[..., 1::2], x[..., ::2]), dim=-1).flatten(-2)


@pytest.mark.parametrize(("turn", "target"), [(halves, "sm_80"), (neighbours, "sm_90")])
def test_rotated_attention_compiles(turn: Callable[[torch.Tensor], torch.Tensor], target: str) -> None:
    def attend(q: torch.Tensor, k: torch.Tensor, v: torch.Tensor, c: torch.Tensor, s: torch.Tensor) -> torch.Tensor:
        scores = (q * c + turn(q) * s) @ (k * c + turn(k) * s).mT
        return torch.softmax(scores * 0.125, -1) @ v

    inputs = {name: randn(2, 128, 64).half() for name in "qkv"} | {name: randn(128, 64).half() for name in "cs"}
    program = lower_region(record(attend, inputs)).program
    device = TARGETS[target]
    fitting = (schedules(found.block, device) for found in topologies(program))
    candidate = min(next(filter(None, fitting)), key=lambda candidate: candidate.estimate_us)
    kernel = lower_kernels([(candidate.block, candidate.schedule)], target=device, outputs=["out"])
    compiled = compile_for(kernel, device.capability)
    assert 0 < compiled.shared_bytes <= device.shared
    assert f".target {target}" in compiled.ptx
