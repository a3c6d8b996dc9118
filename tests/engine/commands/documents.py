"""Documents of `mugraph optimize --json`."""

from __future__ import annotations

import json
from typing import Any

import pytest
from mugraph.cli import run


def optimized(capfd: pytest.CaptureFixture[str], path: str, *more: str) -> dict[str, Any]:
    assert run(["optimize", path, "--json", "--no-measure", "--target", "h200", *more]) == 0
    return json.loads(capfd.readouterr().out)
