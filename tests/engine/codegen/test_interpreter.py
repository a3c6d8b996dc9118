"""Lowered kernels compute what their block graphs say: every case in Triton's interpreter, against float64."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest

from tests.engine.codegen.cases import CASES

ROOT = Path(__file__).resolve().parents[3]
TOLERANCE = {"f16": 2e-3, "bf16": 1.5e-2, "f32": 2e-6}
"""Largest error relative to the largest output, by the least precise type among inputs and outputs."""


@pytest.fixture(scope="session")
def answers(tmp_path_factory: pytest.TempPathFactory) -> dict[str, Any]:
    """All cases in one process: TRITON_INTERPRET must be set before triton is imported."""
    folder = tmp_path_factory.mktemp("kernels")
    child = subprocess.run(
        [sys.executable, "-W", "ignore", "-m", "tests.engine.codegen.interpret_child", str(folder)],
        cwd=ROOT,
        env={**os.environ, "TRITON_INTERPRET": "1"},
        capture_output=True,
        text=True,
        timeout=240,
        check=False,
    )
    assert child.returncode == 0, child.stderr[-2000:]
    return json.loads(child.stdout)


@pytest.mark.parametrize("name", CASES)
def test_kernel_is_right(name: str, answers: dict[str, Any]) -> None:
    answer = answers[name]
    assert "failed" not in answer, answer["failed"]
    types = {tensor.dtype for tensor in CASES[name][0].tensors}
    worst = next(dtype for dtype in ("bf16", "f16", "f32") if dtype in types)
    assert answer["error"] < TOLERANCE[worst]
    assert answer["inputs_unchanged"]
