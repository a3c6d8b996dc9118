"""The text of kernels as people will read it. Refresh with `pytest tests/engine/codegen --snapshot-update`."""

from __future__ import annotations

import pytest
from mugraph.codegen.lower import lower
from syrupy.assertion import SnapshotAssertion

from tests.engine.codegen.cases import CASES, REAL_SIZES
from tests.engine.codegen.goldens import PythonFile

SHOWN = {
    **{
        name: REAL_SIZES[name]
        for name in ("rms_norm_linear", "gated_mlp", "attention", "gemm_chain", "layer_norm", "causal", "convolution")
    },
    "lora": CASES["lora_rank_8_tail"],
    "lora_side_by_side": CASES["lora_side_by_side_tail"],
    "grouped_attention": CASES["grouped_attention_rows_tiled"],
    "attention_mask": CASES["attention_mask"],
    "scaled_linear": CASES["scaled_linear"],
    "causal_last_keys": CASES["causal_last_keys"],
}


@pytest.mark.parametrize("name", SHOWN)
def test_kernel_text(name: str, snapshot: SnapshotAssertion) -> None:
    text = lower(*SHOWN[name]).standalone()
    assert text == snapshot(extension_class=PythonFile)
    compile(text, name, "exec")
    assert max(map(len, text.splitlines())) <= 120
