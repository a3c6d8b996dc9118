"""Lowered kernels compile without a GPU, for Ampere and Hopper, and fit a block's shared memory and registers."""

from __future__ import annotations

import os
import re
from dataclasses import replace

import pytest
from mugraph.codegen.aot import compile_for
from mugraph.codegen.lower import lower
from mugraph.ir.kernel import Rejected
from mugraph.targets import TARGETS

from tests.engine.codegen.cases import CASES, REAL_SIZES

pytestmark = pytest.mark.skipif(os.environ.get("TRITON_INTERPRET") == "1", reason="the interpreter compiles nothing")

COMPILED = {
    **REAL_SIZES,
    **{
        name: CASES[name]
        for name in (
            "rms_norm_linear_1_row", "rms_norm_linear_bf16", "rms_norm_linear_f32", "rms_norm_linear_small_tiles",
            "lora_rank_8_tail_swapped", "ntrans_tail", "attention_mask", "attention_1_query",
            "attention_normed_swapped", "softmax_two_passes", "gemm_chain_tails_swapped", "mixed_types",
            "tile_sum", "activations", "maxout", "tile_max", "holes", "value_range",
            "packed_rows_and_depth", "inner_products", "lora_side_by_side",
        )
    },
}  # fmt: skip


@pytest.mark.parametrize("target", ["sm_80", "sm_90"])
@pytest.mark.parametrize("name", COMPILED)
def test_kernel_compiles(name: str, target: str) -> None:
    device = TARGETS[target]
    compiled = compile_for(lower(*COMPILED[name]), device.capability)
    assert 0 < compiled.shared_bytes <= device.shared
    assert f".target {target}" in compiled.ptx
    assert compiled.registers is None or 8 <= compiled.registers <= 255
    assert compiled.spilled in (None, 0)


def test_a_sum_of_products_compiles_to_one_accumulator() -> None:
    """Concat-matmul outside of a loop over its sum: Triton adds the second product to the first one's accumulator."""
    source = lower(*CASES["halved_attention"])
    chained = source.jit.replace("tl.dot(q1, k1) + tl.dot(q2, k2)", "tl.dot(q2, k2, acc=tl.dot(q1, k1))")
    assert chained != source.jit
    written = replace(source, jit=chained)
    assert _instructions(compile_for(source, 90).ptx) == _instructions(compile_for(written, 90).ptx)


def _instructions(ptx: str) -> list[str]:
    """Without what says which lines and columns of the source they come from."""
    code, _, _ = ptx.partition(".section")
    return [line for line in re.sub(r"//.*", "", code).splitlines() if not line.strip().startswith((".loc", ".file"))]


def test_an_input_that_begins_between_whole_words_is_not_read_in_words() -> None:
    source = lower(*CASES["rms_norm_linear_1_row"])
    skewed = replace(source, inputs=tuple(replace(one, skew=1) for one in source.inputs))
    assert [WORDS in compile_for(one, 90).ptx for one in (source, skewed)] == [True, False]


WORDS = "cp.async.cg"
"""The instruction that copies 16 bytes."""


def test_a_kernel_that_triton_refuses_is_rejected() -> None:
    source = lower(*CASES["tile_sum"])
    broken = replace(source, jit=source.jit.replace("tl.sigmoid(x)", "tl.no_such_function(x)"))
    with pytest.raises(Rejected, match="does not compile tile_sum for sm_90"):
        compile_for(broken, 90)
