"""The engine leaves nothing in the temporary folder."""

from __future__ import annotations

from pathlib import Path

import pytest
from mugraph.protocol import messages as m
from mugraph.protocol.temporary import VARIABLE

from .conftest import Start, document, quick

pytestmark = pytest.mark.usefixtures("whole_machine")
TEXT = """
import torch

# mugraph: x=f16[64, 512], w=f16[512, 512], u=f16[512, 512]
def chain(x, w, u):
    return torch.softmax(x @ w, -1) @ u * torch.sigmoid(x @ u)
"""


@pytest.fixture
def temporary(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    folder = tmp_path / "temporary"
    folder.mkdir()
    for name in ("TMPDIR", "TEMP", "TMP"):
        monkeypatch.setenv(name, str(folder))
    return folder


def test_it_ends_in_the_middle_of_a_search(start: Start, temporary: Path):
    engine = start()
    engine.hello(quick(60.0))
    path = engine.root / "model.py"
    path.write_text(TEXT)
    engine.send(m.Search(engine.id(), document(path)))
    engine.until(lambda said: isinstance(said, m.Progress) and said.key is not None)
    assert list(temporary.iterdir()) != []
    assert engine.exit() == 0
    assert list(temporary.rglob("*")) == []


def test_it_takes_the_folder_that_the_server_names(start: Start, temporary: Path, monkeypatch: pytest.MonkeyPatch):
    named = temporary / "named"
    monkeypatch.setenv(VARIABLE, str(named))
    engine = start()
    engine.hello()
    assert list(temporary.iterdir()) == [named]
    assert engine.exit() == 0
    assert not named.exists()
