"""Bytecode of PyTorch, where its installation has none and gets none.

Python compiles what it imports once, and keeps that beside the source. Where it may not (PYTHONDONTWRITEBYTECODE, as
images of containers set it; a folder of somebody else's), and whoever installed PyTorch did not compile it either, each
process compiles thousands of files anew: ten seconds, in each of the dozen processes of a run.
"""

from __future__ import annotations

import importlib.util
import os
import sys
from pathlib import Path

BYTECODE = "bytecode"
"""Of the cache's folder, the part that it is in."""
_PREFIX, _NOT_WRITTEN = "PYTHONPYCACHEPREFIX", "PYTHONDONTWRITEBYTECODE"


def keep_bytecode(folder: Path, package: str = "torch") -> None:
    """This process and those that it starts keep bytecode in the folder, if the package has none and gets none beside
    its source. What the user has set as a folder stays."""
    if os.environ.get(_PREFIX) or _is_kept(package):
        return
    os.environ.pop(_NOT_WRITTEN, None)
    os.environ[_PREFIX] = str(folder)
    sys.dont_write_bytecode, sys.pycache_prefix = False, str(folder)


def _is_kept(package: str) -> bool:
    spec = importlib.util.find_spec(package)
    if spec is None or spec.origin is None or spec.cached is None:
        return True
    written = not sys.dont_write_bytecode and os.access(Path(spec.origin).parent, os.W_OK)
    return written or Path(spec.cached).exists()
