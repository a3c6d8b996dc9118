"""What one worker has made, for the others."""

from __future__ import annotations

import fcntl
import pickle
from collections.abc import Callable
from pathlib import Path
from typing import TypeVar

import pytest

T = TypeVar("T")


def shared_folder(factory: pytest.TempPathFactory, name: str) -> Path:
    """One folder of this test run, whatever worker asks."""
    base = factory.getbasetemp()
    folder = (base.parent if base.name.startswith("popen-") else base) / name
    folder.mkdir(exist_ok=True)
    return folder


def made_once(file: Path, make: Callable[[], T]) -> T:
    """What `make` returns; whoever comes first makes it, and the others wait for it and read it from the file."""
    with file.with_suffix(".lock").open("w") as lock:
        fcntl.flock(lock, fcntl.LOCK_EX)
        if not file.exists():
            part = file.with_suffix(".part")
            part.write_bytes(pickle.dumps(make()))
            part.rename(file)
    return pickle.loads(file.read_bytes())
