"""Kernels compile for a B200, which need not be present, and are estimated by its figures."""

from __future__ import annotations

import os

import pytest
from mugraph.codegen.aot import compile_for
from mugraph.codegen.lower import lower
from mugraph.search.schedules.cost import estimate_us
from mugraph.targets import TARGETS
from mugraph.tune.device import match

from tests.engine.codegen.cases import CASES, REAL_SIZES

B200 = TARGETS["sm_100"]
COMPILED = {**REAL_SIZES, **{name: CASES[name] for name in ("attention_mask", "lora_rank_8_tail_swapped", "tile_sum")}}


@pytest.mark.skipif(os.environ.get("TRITON_INTERPRET") == "1", reason="the interpreter compiles nothing")
@pytest.mark.parametrize("name", COMPILED)
def test_kernel_compiles(name: str) -> None:
    compiled = compile_for(lower(*COMPILED[name]), B200.capability)
    assert 0 < compiled.shared_bytes <= B200.shared
    assert ".target sm_100" in compiled.ptx
    assert compiled.spilled in (None, 0)


def test_a_b200_is_one() -> None:
    assert match("NVIDIA B200", 100) is B200


@pytest.mark.parametrize("name", REAL_SIZES)
def test_an_estimate_is_below_that_for_hopper(name: str) -> None:
    block, schedule = REAL_SIZES[name][:2]
    assert estimate_us(block, schedule, B200) < estimate_us(block, schedule, TARGETS["sm_90"])
