from __future__ import annotations

from pathlib import Path

import pytest
from mugraph.targets import TARGETS
from mugraph.tune import device
from mugraph.tune.device import Device, UnknownTarget, detect, match, resolve


@pytest.mark.parametrize(
    ("name", "capability", "target"),
    [
        ("NVIDIA H200", 90, "h200"),
        ("NVIDIA H100 80GB HBM3", 90, "h100"),
        ("NVIDIA A100-SXM4-40GB", 80, "a100"),
        ("NVIDIA GH200 480GB", 90, "h200"),
        ("NVIDIA L40S", 89, "sm_89"),
        ("NVIDIA B200", 100, "sm_100"),
        ("Tesla V100", 70, "sm_70"),
    ],
)
def test_match(name: str, capability: int, target: str):
    found = match(name, capability)
    assert found.name == target
    assert found.capability == capability


def test_figures_of_a_stand_in_are_those_of_an_older_architecture():
    assert match("NVIDIA L40S", 89).bandwidth == TARGETS["sm_80"].bandwidth
    assert match("NVIDIA B300", 103).bandwidth == TARGETS["sm_100"].bandwidth
    assert match("NVIDIA L40S", 89).shared == 99 * 1024


def test_no_driver_no_gpu(monkeypatch: pytest.MonkeyPatch):
    monkeypatch.setattr(device, "driver_present", lambda: False)
    assert detect() == Device("no GPU", "none", TARGETS["cpu"])


def test_driver_version(monkeypatch: pytest.MonkeyPatch, tmp_path: Path):
    file = tmp_path / "version"
    file.write_text(
        "NVRM version: NVIDIA UNIX Open Kernel Module for x86_64  570.172.08  Release Build  (dvs-builder@U22)\n"
        "GCC version:  gcc version 12.3.0\n"
    )
    monkeypatch.setattr(device, "_DRIVER", file)
    assert device.driver_version() == "570.172.08"
    file.write_text("NVRM version: NVIDIA UNIX x86_64 Kernel Module  535.104.05  Sat Aug 19 01:15:15 UTC 2023\n")
    assert device.driver_version() == "535.104.05"


def test_resolve():
    here = Device("NVIDIA H200", "gpu", TARGETS["h200"], 90)
    assert resolve("auto", here) is TARGETS["h200"]
    assert resolve("SM_80", here) is TARGETS["sm_80"]
    assert resolve("sm_89", here) == match("NVIDIA L40S", 89)  # one without a model, as the settings take it too
    with pytest.raises(UnknownTarget, match="voodoo"):
        resolve("voodoo", here)
