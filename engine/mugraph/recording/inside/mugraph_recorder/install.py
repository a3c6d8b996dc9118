"""Puts the recorder into a Python that starts: into every module of the user's that it imports, and into its script."""

from __future__ import annotations

import atexit
import builtins
import os
import sys
from collections.abc import Callable
from importlib.machinery import ModuleSpec, SourceFileLoader
from types import CodeType

from .instrument import END, OPEN, SLOTS, TRACED, instrument
from .looks import Looks
from .passed import Passed
from .places import is_own
from .script import as_script
from .spool import Spool

FOLDER = "MUGRAPH_RECORD_TO"
Changed = Callable[[SourceFileLoader, str], CodeType | None]
"""As in mugraph_imports.py."""


def install(change_imports: Callable[[Changed, str], None]) -> None:
    """Does nothing where nothing is to be recorded."""
    folder = os.environ.get(FOLDER)
    if not folder or not os.path.isdir(folder):
        return
    passed = Passed()
    spool = Spool(folder, passed)
    looks = Looks(spool.write, passed, spool.write_passed)
    setattr(builtins, SLOTS, looks.slots)
    setattr(builtins, OPEN, looks.clock.open)
    setattr(builtins, END, looks.clock.end)
    atexit.register(looks.finish)
    if hasattr(os, "fork"):

        def forked() -> None:
            spool.forked()
            looks.forked()

        os.register_at_fork(after_in_child=forked)

    def changed(loader: SourceFileLoader, name: str) -> CodeType | None:
        return compiled(loader.get_data(loader.path), loader.path, looks) if is_own(loader.path) else None

    change_imports(changed, TRACED)
    _hook_script(looks)


def _hook_script(looks: Looks) -> None:
    """`python train.py` does not import train.py. But Python asks the path hooks whether train.py is a place to import
    `__main__` from, as a zip file would be, and then does."""

    def hook(path: str) -> _ScriptFinder:
        if not is_script(path):
            raise ImportError(path)
        sys.path_hooks.remove(hook)
        return _ScriptFinder(path, looks)

    sys.path_hooks.insert(0, hook)


def is_script(path: str) -> bool:
    return os.path.isfile(path) and path.endswith(".py") and is_own(path)


class _ScriptFinder:
    """Finds `__main__` in a script."""

    def __init__(self, path: str, looks: Looks) -> None:
        self._path = path
        self._looks = looks

    def find_spec(self, fullname: str, target: object = None) -> ModuleSpec | None:
        if fullname != "__main__":
            return None
        # sys.path begins with the script, where its folder should stand (nothing with -P).
        if sys.path and sys.path[0] == self._path:
            folder = os.path.dirname(os.path.realpath(self._path))
            sys.path[:1] = [] if sys.flags.safe_path else [folder]
        sys.path_importer_cache.pop(self._path, None)
        spec = ModuleSpec(fullname, _ScriptLoader(fullname, self._path, self._looks), origin=self._path)
        spec.has_location = True
        return spec


class _ScriptLoader(SourceFileLoader):
    def __init__(self, fullname: str, path: str, looks: Looks) -> None:
        super().__init__(fullname, path)
        self._looks = looks

    def get_code(self, fullname: str) -> CodeType:
        """Raises SyntaxError, as running it would."""
        return compiled(self.get_data(self.path), self.path, self._looks, is_script=True)


def compiled(data: bytes, path: str, looks: Looks, is_script: bool = False) -> CodeType:
    tree = instrument(data, path, looks.register)
    if is_script:
        as_script(tree)
    return compile(tree, path, "exec", dont_inherit=True)
