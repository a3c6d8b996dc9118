"""Puts the watcher into a Python that starts: into every generated kernel module that it imports."""

from __future__ import annotations

import builtins
import os
from collections.abc import Callable
from functools import partial
from importlib.machinery import SourceFileLoader
from types import CodeType

from .counts import Counts
from .instrument import ASKED, TRACED, instrument, is_generated
from .watch import Watch

FOLDER = "MUGRAPH_WATCH_TO"
Changed = Callable[[SourceFileLoader, str], CodeType | None]
"""As in mugraph_imports.py."""


def install(change_imports: Callable[[Changed, str], None]) -> None:
    """Does nothing where nothing is to be watched."""
    folder = os.environ.get(FOLDER)
    if not folder or not os.path.isdir(folder):
        return
    counts = Counts(folder)
    watch = Watch(counts)
    setattr(builtins, ASKED, watch.asked)
    if hasattr(os, "fork"):
        os.register_at_fork(after_in_child=counts.forked)
    change_imports(partial(_changed, watch), TRACED)


def _changed(watch: Watch, loader: SourceFileLoader, name: str) -> CodeType | None:
    path = loader.path
    if "_mugraph" not in os.path.basename(path):
        return None
    data = loader.get_data(path)
    regions = is_generated(data, path)
    if not regions:
        return None
    return compile(instrument(data, path, regions, watch.register), path, "exec", dont_inherit=True)
