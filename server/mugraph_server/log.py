"""The log: on standard error, where editors show it, and the last lines in memory for a report.

Never source text: a person should be able to attach it to an issue without reading it first.
"""

from __future__ import annotations

import logging
import sys
from collections import deque

from mugraph_server.settings import LogLevel

KEPT = 400
LONGEST = 2_000
"""Characters of one record; the rest is cut. An engine may print megabytes."""

recent: deque[str] = deque(maxlen=KEPT)

logger = logging.getLogger("mugraph_server")


class _Format(logging.Formatter):
    def format(self, record: logging.LogRecord) -> str:
        text = super().format(record)
        return text if len(text) <= LONGEST else f"{text[:LONGEST]}... ({len(text) - LONGEST} more)"


class _Keep(logging.Handler):
    def emit(self, record: logging.LogRecord) -> None:
        recent.append(self.format(record))


class _Errors(logging.StreamHandler):  # pyright: ignore[reportMissingTypeArgument] # generic in its stubs only
    """Standard error that may be gone: an editor that died must not make us print tracebacks about it."""

    def handleError(self, record: logging.LogRecord) -> None:
        self.close()
        logger.removeHandler(self)


def start(level: LogLevel = "info") -> None:
    logger.propagate = False
    logger.handlers.clear()
    form = _Format("%(asctime)s %(levelname)s %(message)s", "%H:%M:%S")
    for handler in (_Keep(), _Errors(sys.stderr)):
        handler.setFormatter(form)
        logger.addHandler(handler)
    set_level(level)
    # pygls logs every message it sends with its text, and tracebacks for what a client did wrong; ours is said below
    logging.getLogger("pygls").addHandler(logging.NullHandler())
    logging.getLogger("pygls").propagate = False
    logging.getLogger("pygls").setLevel(logging.CRITICAL)
    logging.getLogger("asyncio").setLevel(logging.CRITICAL)


def set_level(level: LogLevel) -> None:
    logger.setLevel(level.upper())
