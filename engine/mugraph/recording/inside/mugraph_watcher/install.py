"""Puts the watcher into a Python that starts: into every generated kernel module that it imports."""

from __future__ import annotations

import builtins
import os
import sys
from importlib.machinery import SourceFileLoader
from types import CodeType

from .counts import Counts
from .instrument import ASKED, TRACED, instrument, is_generated
from .watch import Watch

FOLDER = "MUGRAPH_WATCH_TO"


def install() -> None:
    """Does nothing where nothing is to be watched."""
    folder = os.environ.get(FOLDER)
    if not folder or not os.path.isdir(folder):
        return
    counts = Counts(folder)
    watch = Watch(counts)
    setattr(builtins, ASKED, watch.asked)
    setattr(builtins, TRACED, lambda: False)
    if hasattr(os, "fork"):
        os.register_at_fork(after_in_child=counts.forked)
    _hook_imports(watch)


def _hook_imports(watch: Watch) -> None:
    """Wraps the one method that all ways of importing a source file call. Its result is not kept on disk as
    bytecode."""
    ordinary = SourceFileLoader.get_code

    def get_code(self: SourceFileLoader, fullname: str) -> CodeType | None:
        path = self.path
        if fullname == "torch._dynamo":
            _tell_dynamo()
        if "_mugraph" in os.path.basename(path):
            try:
                data = self.get_data(path)
                regions = is_generated(data, path)
                if regions:
                    tree = instrument(data, path, regions, watch.register)
                    return compile(tree, path, "exec", dont_inherit=True)
            except (OSError, SyntaxError, ValueError, RecursionError):
                pass  # the ordinary way says what is wrong
        return ordinary(self, fullname)

    SourceFileLoader.get_code = get_code


def _tell_dynamo() -> None:
    """Once torch is there, the name stands for the function that returns False, and that dynamo takes for True: what is
    compiled asks the guard as it stands in the file."""
    compiler = getattr(sys.modules.get("torch"), "compiler", None)
    traced = getattr(compiler, "is_dynamo_compiling", None)
    if callable(traced):
        setattr(builtins, TRACED, traced)
