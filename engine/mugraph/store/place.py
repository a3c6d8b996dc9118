"""Where results are kept, and getting a file that cannot be used out of the way."""

from __future__ import annotations

import logging
import os
import sys
import time
from pathlib import Path

_log = logging.getLogger("mugraph.store")


def cache_folder() -> Path:
    """$MUGRAPH_CACHE_DIR; else `mugraph` in $XDG_CACHE_HOME or in the platform's folder for caches."""
    if own := os.environ.get("MUGRAPH_CACHE_DIR"):
        return Path(own).expanduser()
    if xdg := os.environ.get("XDG_CACHE_HOME"):
        return Path(xdg) / "mugraph"
    if sys.platform == "darwin":
        return Path.home() / "Library" / "Caches" / "mugraph"
    if sys.platform == "win32" and (local := os.environ.get("LOCALAPPDATA")):
        return Path(local) / "mugraph" / "Cache"
    return Path.home() / ".cache" / "mugraph"


def file_id(path: Path) -> tuple[int, int] | None:
    """Device and inode of the file, None when there is none: another process may have put a new one in its place."""
    try:
        found = path.stat()
    except FileNotFoundError:  # before the first result
        return None
    except OSError as error:  # opening it fails for the same reason, and says so
        _log.info("%s cannot be looked at: %s", path, error)
        return None
    return found.st_dev, found.st_ino


def set_aside(path: Path, seen: tuple[int, int] | None) -> Path | None:
    """Renames a database file with its journals; None when it is no longer the file that was `seen`.

    Raises OSError when the folder does not allow it.
    """
    if seen is None or file_id(path) != seen:
        return None
    aside = path.with_name(f"{path.name}.aside-{time.strftime('%Y%m%d-%H%M%S')}-{os.getpid()}")
    os.replace(path, aside)
    for journal in ("-wal", "-shm"):
        old = path.with_name(path.name + journal)
        if old.exists():
            os.replace(old, aside.with_name(aside.name + journal))
    return aside
