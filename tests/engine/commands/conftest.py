"""Files that commands are given, and where they keep what they find."""

from __future__ import annotations

from pathlib import Path

import pytest


@pytest.fixture(scope="module")
def model(request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A file that holds the module's TEXT."""
    path = tmp_path_factory.mktemp("model") / "model.py"
    path.write_text(request.module.TEXT)
    return path


@pytest.fixture
def own_cache(model: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """What is kept between runs is kept beside the model: by all of a module's tests, and by none else."""
    monkeypatch.setenv("MUGRAPH_CACHE_DIR", str(model.parent / "cache"))
