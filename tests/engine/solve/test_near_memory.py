"""Where memory is what a kernel waits for, a copy of as many bytes says how fast any can be."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Any, cast

import pytest
from mugraph.codegen.lower import lower
from mugraph.ir.region import SearchUnit
from mugraph.search.run import Search
from mugraph.search.schedules.sizes import schedules
from mugraph.search.topologies.limits import Limits
from mugraph.solve.near_memory import copy_us, is_near_memory
from mugraph.targets import TARGETS
from mugraph.trace.tracer import trace_file
from mugraph.tune.measure import Refused
from mugraph.tune.messages import InputSpec, Subject
from mugraph.tune.statistics import Summary
from mugraph.tune.tuner import Variant
from mugraph.units.region_units import cut_region

TARGET = TARGETS["h100"]
TEXT = """\
import torch
import torch.nn.functional as F


# mugraph: x=f32[4096, 8192], w=f32[8192]
def scaled(x: torch.Tensor, w: torch.Tensor) -> torch.Tensor:
    return F.silu(x * w)


# mugraph: x=f32[64, 8192], w=f32[8192]
def few(x: torch.Tensor, w: torch.Tensor) -> torch.Tensor:
    return F.silu(x * w)


# mugraph: x=f16[4096, 4096], w=f16[4096, 4096]
def product(x: torch.Tensor, w: torch.Tensor) -> torch.Tensor:
    return F.silu(x @ w)
"""


@dataclass
class Copies:
    """Stands for the measuring process."""

    answer: Summary | Refused
    asked: list[tuple[Subject, tuple[InputSpec, ...]]] = field(default_factory=list[Any])

    def measure_kernel(self, subject: Subject, inputs: tuple[InputSpec, ...], rounds: int) -> Summary | Refused:
        self.asked.append((subject, inputs))
        return self.answer


@pytest.fixture(scope="module")
def units(tmp_path_factory: pytest.TempPathFactory) -> dict[str, SearchUnit]:
    path = tmp_path_factory.mktemp("near") / "model.py"
    path.write_text(TEXT)
    found = {region.function: cut_region(region)[1] for region in trace_file(path).regions}
    return {name: next(unit for unit in parts if isinstance(unit, SearchUnit)) for name, parts in found.items()}


@pytest.mark.parametrize(("name", "near"), [("scaled", True), ("few", False), ("product", False)])
def test_what_is_bound_by_memory(units: dict[str, SearchUnit], name: str, near: bool) -> None:
    program = units[name].program
    blocks = [found.block for found in Search(program, Limits(seconds=5)).run()]
    every = [one for block in blocks[:16] for one in schedules(block, TARGET)[:1]]
    best = min(every, key=lambda one: one.estimate_us)
    variant = Variant(best, lower(best.block, best.schedule, target=TARGET))
    assert is_near_memory(program, [variant], TARGET) == near
    assert not is_near_memory(program, [], TARGET)


def test_a_copy_reads_and_writes_as_much(units: dict[str, SearchUnit]) -> None:
    measurer = Copies(Summary(87.0, 0.1, 12))
    assert copy_us(units["scaled"].program, cast(Any, measurer)) == 87.0
    ((subject, (spec,)),) = measurer.asked
    assert 2 * 4 * spec.shape[0] == pytest.approx(2 * 4 * 4096 * 8192, rel=1e-3)
    namespace: dict[str, Any] = {}
    exec(subject.source, namespace)
    import torch

    x = torch.rand(16)
    made = namespace[subject.function](x)
    assert torch.equal(made, x)
    assert made.data_ptr() != x.data_ptr()
    assert copy_us(units["scaled"].program, cast(Any, Copies(Refused("out of memory")))) is None
