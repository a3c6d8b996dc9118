"""Samples of whole models: their layers are one region, whatever stands around them, and nothing of them is unsaid."""

from __future__ import annotations

import pytest
from mugraph.commands.bench_files import models_in
from mugraph.ir.region import SearchUnit
from mugraph.trace.syntax.callers import Callers
from mugraph.trace.tracer import trace_file
from mugraph.units.region_units import cut_region

from tests.samples.declared import SAMPLES

FOLDER = SAMPLES / "models"
LONG = {"bert_base", "ngpt_prompt", "llama3_1b_prompt", "llama3_1b_lora_step", "qwen3_0_6b_prompt", "qwen3_0_6b_step"}
"""Those whose kinds of layers others have as well, and whose many layers take seconds to be traced."""
NAMES = ("bert_base", "chameleon_7b_prompt", "chameleon_7b_step", "llama3_1b_lora_prompt", "llama3_1b_lora_step",
         "llama3_1b_prompt", "llama3_1b_step", "ngpt_prompt", "ngpt_step", "qwen3_0_6b_prompt", "qwen3_0_6b_step",
         "vit_base")  # fmt: skip


def test_they_are_found_by_name() -> None:
    found = models_in(FOLDER, [])
    assert found == [str(FOLDER / f"{name}.py") for name in NAMES]
    assert models_in(FOLDER, ["vit_base"]) == [str(FOLDER / "vit_base.py")]


@pytest.mark.parametrize(
    "name", [pytest.param(name, marks=pytest.mark.more) if name in LONG else name for name in NAMES]
)
def test_a_models_layers_are_a_region(name: str) -> None:
    path = FOLDER / f"{name}.py"
    trace = trace_file(path)
    if trace.elsewhere:  # its forward is that of all decoders
        assert ([*trace.elsewhere], trace.errors, trace.regions) == ([str(FOLDER / "decoder.py")], (), ())
        trace = trace_file(FOLDER / "decoder.py", callers=Callers((path,), each=True))
    assert (trace.errors, trace.notices) == ((), ())
    regions = [region for region in trace.regions if region.status != "needs-shapes"]
    assert {region.status for region in regions} == {None}
    units = [[part for part in cut_region(one)[1] if isinstance(part, SearchUnit)] for one in regions]
    assert len(units) in (2, 3)
    assert len(units[-2]) > 3, "the layers"
    assert all(units)
