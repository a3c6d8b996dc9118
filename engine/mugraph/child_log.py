"""What a child process logs, among the lines of its standard error, is logged again by the process that started it."""

from __future__ import annotations

import contextlib
import json
import logging
import os
from collections.abc import Sequence
from typing import cast

_MARK = "\x02mugraph-log "  # no blank to Python, which strips those


class _Lines(logging.Handler):
    """One line a record, tracebacks included."""

    def emit(self, record: logging.LogRecord) -> None:
        said = json.dumps([record.levelno, record.name, self.format(record)])
        with contextlib.suppress(OSError):  # the user's code may have closed it
            os.write(2, f"{_MARK}{said}\n".encode())


def write() -> None:
    """In the child: whatever is logged at info or above is written; who reads it decides what is shown."""
    logger = logging.getLogger("mugraph")
    logger.setLevel(logging.INFO)
    logger.addHandler(_Lines())
    logger.propagate = False  # the user's code may send the root logger's records elsewhere


def pass_on(lines: Sequence[str]) -> list[str]:
    """In the parent: logs what the child has logged; the other lines."""
    rest: list[str] = []
    for line in lines:
        before, mark, said = line.partition(_MARK)
        if before or not mark:
            rest.append(before)
        if not mark:
            continue
        try:
            level, name, text = cast("tuple[int, str, str]", json.loads(said))
        except ValueError:  # cut off by the child's death
            rest.append(said)
            continue
        logging.getLogger(name).log(level, "%s", text)
    return rest
