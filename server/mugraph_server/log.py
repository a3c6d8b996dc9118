"""The log: on standard error, where editors show it, in a file a person can attach, and its end in memory for a report.

Never source text: a person should be able to attach it to an issue without reading it first.
"""

from __future__ import annotations

import logging
import logging.handlers
import os
import sys
from collections import deque
from pathlib import Path

from mugraph.protocol.settings import LogLevel

KEPT = 400
LONGEST = 2_000
"""Characters of one record; the rest is cut. An engine may print megabytes."""
FILE_BYTES, FILES = 1_000_000, 2

recent: deque[str] = deque(maxlen=KEPT)
errors: deque[str] = deque(maxlen=20)

logger = logging.getLogger("mugraph_server")


def log_path() -> Path:
    """In the folder the engine keeps its results in: $MUGRAPH_CACHE_DIR, else the platform's folder for caches."""
    if own := os.environ.get("MUGRAPH_CACHE_DIR"):
        return Path(own) / "server.log"
    if sys.platform == "darwin":
        base = Path.home() / "Library" / "Caches"
    elif sys.platform == "win32":
        base = Path(os.environ.get("LOCALAPPDATA") or Path.home() / "AppData" / "Local")
    else:
        base = Path(os.environ.get("XDG_CACHE_HOME") or Path.home() / ".cache")
    return base / "mugraph" / "server.log"


class _Format(logging.Formatter):
    def format(self, record: logging.LogRecord) -> str:
        text = super().format(record)
        return text if len(text) <= LONGEST else f"{text[:LONGEST]}... ({len(text) - LONGEST} more)"


class _Keep(logging.Handler):
    def emit(self, record: logging.LogRecord) -> None:
        line = self.format(record)
        recent.append(line)
        if record.levelno >= logging.ERROR:
            errors.append(line)


class _Errors(logging.StreamHandler):  # pyright: ignore[reportMissingTypeArgument] # generic in its stubs only
    """Standard error, which may be closed: when the editor dies we must not print tracebacks about it."""

    def handleError(self, record: logging.LogRecord) -> None:
        self.close()
        logger.removeHandler(self)


class _File(logging.handlers.RotatingFileHandler):
    def handleError(self, record: logging.LogRecord) -> None:
        """A full disk: the log goes on elsewhere."""
        logger.removeHandler(self)


def start(level: LogLevel = "info") -> None:
    logger.propagate = False
    logger.handlers.clear()
    handlers: list[logging.Handler] = [_Keep(), _Errors(sys.stderr)]
    path, trouble = log_path(), None
    try:
        path.parent.mkdir(parents=True, exist_ok=True)
        handlers.append(_File(path, maxBytes=FILE_BYTES, backupCount=FILES, encoding="utf-8", delay=True))
    except OSError as error:
        trouble = error  # standard error has to do
    form = _Format(f"%(asctime)s {os.getpid()} %(levelname)s %(message)s", "%Y-%m-%d %H:%M:%S")
    for handler in handlers:
        handler.setFormatter(form)
        logger.addHandler(handler)
    set_level(level)
    if trouble is not None:
        logger.warning("the log %s cannot be written: %s", path, trouble)
    # pygls logs every message it sends with its text, and tracebacks for what a client did wrong; ours is said above
    logging.getLogger("pygls").addHandler(logging.NullHandler())
    logging.getLogger("pygls").propagate = False
    logging.getLogger("pygls").setLevel(logging.CRITICAL)
    logging.getLogger("asyncio").setLevel(logging.CRITICAL)


def set_level(level: LogLevel) -> None:
    logger.setLevel(level.upper())
