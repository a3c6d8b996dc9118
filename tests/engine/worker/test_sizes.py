"""A size in a range, as the server is told of it."""

from __future__ import annotations

import pytest
from mugraph.protocol import messages as m

from .conftest import Engine, document

TEXT = """\
import torch


# mugraph: b=1..64, x=f16[b, 64], w=f16[64, 48]
def product(x: torch.Tensor, w: torch.Tensor) -> torch.Tensor:
    return torch.relu(x @ w)
"""


@pytest.fixture
def engine(prepared: Engine) -> Engine:
    return prepared


def test_times_are_told_for_each_size(engine: Engine) -> None:
    path = engine.root / "ranged.py"
    path.write_text(TEXT)
    assert engine.search(document(path)).outcome == "done"
    region = engine.all_of(m.RegionChanged)[-1].region
    assert region.status == "improved"
    assert region.sizes == "b = 1..64"
    timing = region.timing
    assert timing is not None
    assert timing.source == "estimated"
    assert {1, 8, 64} <= {row.size for row in timing.sizes}
    gaining = [row for row in timing.sizes if row.speedup is not None and row.speedup > 1]
    assert timing.at == f"b = {gaining[-1].size}"
    assert (timing.baseline_us, timing.optimized_us) == (gaining[-1].baseline_us, gaining[-1].optimized_us)
    assert timing.faster_for.startswith("b ")
    assert f"by estimate for {timing.faster_for} on " in region.message
    assert region.message.endswith("verified; not measured")
