"""The file that a module's programs are in: its CODE."""

from __future__ import annotations

from pathlib import Path
from typing import cast

import pytest


@pytest.fixture(scope="module")
def path(request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory) -> Path:
    path = tmp_path_factory.mktemp("programs") / "code_.py"
    path.write_text(cast(str, request.module.CODE))
    return path
