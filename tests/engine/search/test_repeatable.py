"""The same program gives the same topologies and candidates: in another process, on a busy machine."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

import pytest
from mugraph.search import Limits, Search

from tests.engine.search.workloads import (
    attention,
    gated_mlp,
    lora,
    norm_transformer,
    rmsnorm_gated_mlp,
    rmsnorm_linear,
)
from tests.support.clock import Clock

PRINT = """
from mugraph.targets import TARGETS
from mugraph.search import Limits, Search, candidates
from tests.engine.search.workloads import attention, lora, norm_transformer, rmsnorm_linear
from tests.support.clock import slow_clock
for program in (lora(), rmsnorm_linear(), attention(norm=True), norm_transformer()):
    search = Search(program, Limits(seconds=3.0))
    with slow_clock():
        blocks = [found.block for found in search.run()]
    print(*blocks, sep="\\n")
    print(search.stats.ended_by, search.stats.complete_to, sorted(search.stats.pruned.items()))
    for candidate in candidates(blocks[:20], TARGETS["h100"]):
        print(candidate.block, candidate.schedule, candidate.estimate_us)
"""


def test_the_hash_seed_changes_nothing() -> None:
    here = Path(__file__).parents[3]
    path = os.pathsep.join([str(here), *(p for p in sys.path if p)])
    said = [
        subprocess.run([sys.executable, "-c", PRINT], env={**os.environ, "PYTHONHASHSEED": seed, "PYTHONPATH": path},
                       capture_output=True, text=True, check=True, timeout=120).stdout
        for seed in ("1", "2")
    ]  # fmt: skip
    assert len(said[0]) > 10_000
    assert said[0] == said[1]


def test_a_busy_machine_finds_the_same(clock: Clock) -> None:
    """Time passes whenever the search looks whether it is cancelled, and nests still get the turns they get on an idle
    machine."""

    def busy() -> bool:
        clock.seconds += 0.0005
        return False

    idle = [found.block for found in Search(attention(norm=True), Limits(seconds=4.0)).run()]
    slow = [found.block for found in Search(attention(norm=True), Limits(seconds=4.0), busy).run()]
    assert len(idle) > 500
    assert slow == idle


@pytest.mark.parametrize("make", [rmsnorm_linear, gated_mlp, lora, norm_transformer, attention, rmsnorm_gated_mlp])
def test_the_space_of_eleven_operators_is_exhausted(make, clock: Clock) -> None:
    search = Search(make(), Limits(seconds=8.0))
    list(search.run())
    stats = search.stats
    assert stats.complete
    assert stats.ended_by in ("space", "size", "work")
    assert stats.complete_to == 11 or stats.ended_by != "work"


def test_memory_ends_saturation_and_is_reported() -> None:
    search = Search(norm_transformer(), Limits(memory=20 << 20))
    assert list(search.run())
    assert search.stats.ended_by == "memory"
    assert search.stats.values < 6000
