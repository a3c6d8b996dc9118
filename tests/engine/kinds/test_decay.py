"""exp(-|x|), which a softplus is made of: several on a path, beside an exponential."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

import pytest
import torch
from mugraph.events import Done
from mugraph.ir.ops import Kind, Op
from mugraph.ops.algebra.primitives import Primitives
from mugraph.optimizer.nodes import scheduled
from mugraph.pipeline import Options, run
from mugraph.search.direct import as_block
from mugraph.sizes.text import text_checked
from mugraph.verification.verifier import verify_topology

from tests.engine.ops.harness import lower_region, record

SPELLINGS = """\
import torch
import torch.nn.functional as F


# mugraph: x=f32[16, 32]
def twice(x):
    return F.softplus(F.softplus(x)).sum(-1)


# mugraph: x=f32[16, 32], a=f32[32]
def below_an_exponential(x, a):
    return torch.exp(-F.softplus(x) * a).sum(-1)


# mugraph: x=f32[16, 32]
def others(x):
    return F.mish(F.logsigmoid(x)).sum(-1)
"""


def test_functions_that_call_them_get_one_kernel_that_is_right(tmp_path: Path) -> None:
    path = tmp_path / "soft.py"
    path.write_text(SPELLINGS)
    (done,) = (
        event for event in run(path, options=Options(budget_s=2, compare_with="code")) if isinstance(event, Done)
    )
    assert done.result.errors == ()
    assert {region.region.function for region in done.result.regions} == {"twice", "below_an_exponential", "others"}
    for region in done.result.regions:
        assert region.status == "improved", (region.region.function, region.reason)
        (unit,) = region.units
        assert unit.solution is not None
        assert [call.target for call in unit.unit.calls] == [call.target for call in region.region.calls]
        (source,) = region.sources.values()
        # The text is read as the function, and one that decays in one direction alone is not.
        kernels = [scheduled(kernel) for kernel in unit.solution.kernels]
        assert text_checked(unit.unit.program, source, kernels).passed
        grows = replace(source, jit=source.jit.replace("tl.exp(-tl.abs(", "tl.exp(-1.0 * ("))
        assert grows.jit != source.jit
        assert not text_checked(unit.unit.program, grows, kernels).passed


def twice(x: torch.Tensor, w: torch.Tensor) -> torch.Tensor:
    return torch.nn.functional.softplus(torch.nn.functional.softplus(x) + w).sum(-1)


@pytest.mark.parametrize("wrong", [Kind.EXP, Kind.LOG1P])
@pytest.mark.parametrize("number", [0, 1])
def test_another_function_is_rejected(wrong: Kind, number: int) -> None:
    program = lower_region(record(twice, {"x": torch.ones(16, 32), "w": torch.ones(16, 32)})).program
    block = as_block(program)
    assert verify_topology(program, block, seed=0).passed
    decays = [op.name for op in block.ops if op.kind is Kind.DECAY]
    assert len(decays) == 2

    def changed(op: Op) -> Op:
        return replace(op, kind=wrong) if op.name == decays[number] else op

    ops = tuple(map(changed, block.ops))
    assert not verify_topology(program, replace(block, ops=ops), seed=0).passed


def test_of_a_number_it_is_a_number() -> None:
    algebra = Primitives()
    decay = algebra.opaque(Kind.DECAY, algebra.const(0.0))
    assert (decay.kind, decay.value) == (Kind.CONST, 1.0)
