"""Modules of other packages, as a program imports them."""

from __future__ import annotations

import importlib
import sys
from collections.abc import Callable, Iterator
from pathlib import Path
from types import ModuleType

import pytest
from mugraph.edit import in_place

Lend = Callable[..., list[ModuleType]]


@pytest.fixture
def lend(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[Lend]:
    """`lend(name=text, ...)`: the modules, imported in this order. They are gone after the test."""
    monkeypatch.setenv("MUGRAPH_CACHE_DIR", str(tmp_path / "cache"))
    packages = tmp_path / "site-packages"
    packages.mkdir()
    monkeypatch.syspath_prepend(str(packages))
    lent: list[str] = []

    def made(**texts: str) -> list[ModuleType]:
        for name, text in texts.items():
            (packages / f"{name}.py").write_text(text)
        lent.extend(texts)
        return [importlib.import_module(name) for name in texts]

    yield made
    for name in lent:
        del sys.modules[name]
    in_place.forget()
