"""A server that is busy."""

from __future__ import annotations

import json
from pathlib import Path

from tests.server.conftest import Control
from tests.server.support.editor import Editor
from tests.server.support.texts import IMPROVED


def searching(client: Editor, root: Path, control: Control, name: str = "model.py") -> str:
    """A search that will not end by itself."""
    control.tell(**{"search_s": 600, **json.loads(control.path.read_text())})
    uri = client.open(root / name, IMPROVED.replace("def f", "def busy"))
    client.until(lambda: client.status().get("regions", {}).get("searching"), what="a search")
    return uri
