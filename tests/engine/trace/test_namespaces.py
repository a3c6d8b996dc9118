"""Functions that call themselves by another name than programs do: `torch.linalg.vector_norm` is one kernel's work."""

from __future__ import annotations

import pytest
import torch
from mugraph.trace.pytorch.targets import target_of

from tests.engine.trace.partition import Regions, only, targets

SPELLED = {
    "torch.linalg.vector_norm": "x / torch.linalg.vector_norm(x, dim=-1, keepdim=True).clamp(min=1e-6) * w",
    "torch.linalg.norm": "x / (torch.linalg.norm(x, dim=-1, keepdim=True) + 1e-6) * w",
    "torch.linalg.matmul": "torch.linalg.matmul(x, w[:, None]).tanh()",
    "torch.special.expit": "torch.special.expit(x) * w",
    "torch.special.logsumexp": "torch.special.logsumexp(x * w, -1)",
}


@pytest.mark.parametrize("name", SPELLED)
def test_it_is_a_part_of_a_region_by_the_name_that_programs_have(name: str, regions: Regions) -> None:
    region = only(regions(f"# mugraph: x=f32[4, 64], w=f32[64]\ndef f(x, w):\n    return {SPELLED[name]}\n"))
    assert name in targets(region)


def test_other_names_are_what_they_were() -> None:
    assert target_of(torch.mm) == "torch.mm"
    assert target_of(torch.nn.functional.gelu).endswith("gelu")
