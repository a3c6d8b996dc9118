"""What the process that runs kernels does, done here."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from typing import Any

import torch
from mugraph.verification import float_child
from mugraph.verification.scenario_run import ScenarioResult


def every_scenario(request: Mapping[str, Any], folder: Path) -> list[ScenarioResult]:
    """Up to the first that fails."""
    test = float_child.begun(request, folder)
    results: list[ScenarioResult] = []
    for position in range(len(test.scenarios)):
        results += float_child.run(test, position, torch.device("cpu"))
        if not all(one.passed for one in results):
            break
    return results
