"""What a target may be called is said in one table: settings, command line and the extension have it from there."""

from __future__ import annotations

import json
from pathlib import Path

import pytest
from mugraph.protocol.targets import DEVICES, NAMES, PATTERN, is_target
from mugraph_server.settings import Settings, read

EXTENSION = Path(__file__).parents[2] / "editor-extension"


@pytest.mark.parametrize("name", ["auto", "cpu", *DEVICES, "sm_80", "sm_89", "sm_90", "sm_100", "sm_120"])
def test_a_name_of_the_table_or_an_architecture_is_a_setting(name: str) -> None:
    assert is_target(name)
    assert read({"target": name}) == (Settings(target=name), [])


@pytest.mark.parametrize("name", ["", "sm_", "sm_x", "sm_90a", "auto|cpu", "h", "h100\n"])
def test_anything_else_is_none(name: str) -> None:
    assert not is_target(name)


def test_the_extension_names_the_same() -> None:
    manifest = json.loads((EXTENSION / "package.json").read_text())
    setting = manifest["contributes"]["configuration"]["properties"]["mugraph.target"]
    assert setting["pattern"] == PATTERN
    assert setting["patternErrorMessage"] == NAMES
    every = ", ".join(f"`{name}`" for name in DEVICES)
    assert f"{every} or an architecture such as `sm_90`" in setting["markdownDescription"]
    (row,) = [
        line for line in (EXTENSION / "README.md").read_text("utf-8").splitlines() if "| `mugraph.target`" in line
    ]
    assert f"{every} or an architecture such as `sm_90`" in row
