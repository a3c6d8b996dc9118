"""Golden files. `MUGRAPH_REFRESH_GOLDENS=1 python -m pytest tests/engine/ir` writes them anew."""

from __future__ import annotations

import os
from pathlib import Path


def check_golden(path: Path, text: str) -> None:
    if os.environ.get("MUGRAPH_REFRESH_GOLDENS"):
        path.parent.mkdir(exist_ok=True)
        path.write_text(text)
    assert path.exists(), f"{path.name} is missing; refresh the golden files"
    assert path.read_text() == text
