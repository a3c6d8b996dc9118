"""Measured times are kept by everything they depend on."""

from __future__ import annotations

from dataclasses import replace

import pytest
from mugraph.events import Called, Timing
from mugraph.memory.timings import recall_timing, remember_timing, timing_key
from mugraph.targets import TARGETS
from mugraph.tune.device import Device
from mugraph.tune.messages import InputSpec

DEVICE = Device("NVIDIA H200", "gpu", TARGETS["h200"], 90, "570.1")
SPECS = (InputSpec((8, 64), (64, 1), "f16"),)
KEY = timing_key("text", "function", SPECS, DEVICE)
PEERS = {"eager": 9.1, "torch.compile": 9.0}
TIMING = Timing(
    9.1, 4.5, 2.02, PEERS, "torch.compile", 2.0, Called(90.0, 40.0, 2.25, PEERS, "eager", 2.25, "wall time"),
    source="measured", device="NVIDIA H200", method="CUDA graphs",
)  # fmt: skip


@pytest.mark.parametrize("reason", [None, "differs from the original by 1e-1"])
def test_round_trip(reason: str | None) -> None:
    assert recall_timing(remember_timing(TIMING, reason)) == (TIMING, reason)


@pytest.mark.parametrize("document", [{}, {"timing": 3, "reason": None}, {"timing": {"speedup": "2"}, "reason": None}])
def test_what_cannot_be_read_is_measured_again(document: dict[str, object]) -> None:
    assert recall_timing(document) is None


def test_the_key_changes_with_what_was_measured_and_where() -> None:
    others = {
        timing_key("text 2", "function", SPECS, DEVICE),
        timing_key("text", "function 2", SPECS, DEVICE),
        timing_key("text", "function", (replace(SPECS[0], shape=(16, 64)),), DEVICE),
        timing_key("text", "function", (replace(SPECS[0], strides=(1, 8)),), DEVICE),
        timing_key("text", "function", SPECS, replace(DEVICE, name="NVIDIA H100")),
        timing_key("text", "function", SPECS, replace(DEVICE, driver="571")),
        timing_key("text", "function", SPECS, DEVICE, ("eager",)),
        timing_key("text", "function", SPECS, DEVICE, (), "import model_mugraph"),
    }
    assert len(others) == 8
    assert KEY not in others
