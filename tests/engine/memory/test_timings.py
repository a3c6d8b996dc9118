"""Measured times are kept by everything they depend on."""

from __future__ import annotations

from dataclasses import replace

import pytest
from mugraph.events import Called, Timing
from mugraph.memory.timings import recall_timing, remember_timing, timing_key
from mugraph.targets import TARGETS
from mugraph.tune.device import Device
from mugraph.tune.messages import InputSpec, Subject

DEVICE = Device("NVIDIA H200", "gpu", TARGETS["h200"], 90, "570.1")
SPECS = (InputSpec((8, 64), (64, 1), "f16"),)
SUBJECT = Subject("ours", "text", "function")
KEY = timing_key(SUBJECT, SPECS, DEVICE)
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
        timing_key(replace(SUBJECT, source="text 2"), SPECS, DEVICE),
        timing_key(replace(SUBJECT, function="function 2"), SPECS, DEVICE),
        timing_key(replace(SUBJECT, tf32=("cublas",)), SPECS, DEVICE),
        timing_key(SUBJECT, (replace(SPECS[0], shape=(16, 64)),), DEVICE),
        timing_key(SUBJECT, (replace(SPECS[0], strides=(1, 8)),), DEVICE),
        timing_key(SUBJECT, SPECS, replace(DEVICE, name="NVIDIA H100")),
        timing_key(SUBJECT, SPECS, replace(DEVICE, driver="571")),
        timing_key(SUBJECT, SPECS, DEVICE, ("eager",)),
        timing_key(SUBJECT, SPECS, DEVICE, (), "import model_mugraph"),
    }
    assert len(others) == 9
    assert KEY not in others
