"""Every construct of Triton that the reader knows gives what Triton's interpreter gives, on whole numbers."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from pathlib import Path

import numpy as np
import pytest

from tests.engine.triton_text.constructs import CONSTRUCTS, drawn
from tests.engine.triton_text.texts import launched


@pytest.fixture(scope="module")
def interpreted(tmp_path_factory: pytest.TempPathFactory) -> dict[str, object]:
    folder: Path = tmp_path_factory.mktemp("kernels")
    command = [sys.executable, "-m", "tests.engine.triton_text.interpret_child", str(folder)]
    env = {**os.environ, "TRITON_INTERPRET": "1"}
    ran = subprocess.run(command, capture_output=True, text=True, env=env, timeout=120)
    assert ran.returncode == 0, ran.stderr
    return json.loads(ran.stdout)


@pytest.mark.parametrize("name", CONSTRUCTS)
def test_as_in_the_interpreter(name: str, interpreted: dict[str, object]) -> None:
    construct = CONSTRUCTS[name]
    assert np.array_equal(launched(construct.text, drawn(construct)), np.array(interpreted[name]))
