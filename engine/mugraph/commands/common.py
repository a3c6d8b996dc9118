"""What the commands share: paths with a name, errors as one sentence, JSON on standard output."""

from __future__ import annotations

import json
import logging
import re
import sys
from dataclasses import dataclass
from pathlib import Path

from mugraph.dependencies import installed

OK, FAILED, USAGE, INTERRUPTED = 0, 1, 2, 130


class WrongUsage(Exception):
    """The command line asks for something that cannot be: exit status 2. One sentence."""


@dataclass(frozen=True, slots=True)
class Where:
    """PATH[:QUALNAME]."""

    path: Path
    qualname: str | None


def where(text: str) -> Where:
    """Raises WrongUsage where the path is no file."""
    path, qualname = Path(text), None
    head, colon, tail = text.rpartition(":")
    if colon and head and re.fullmatch(r"[^\W\d]\w*(\.([^\W\d]\w*|<locals>))*", tail) and not path.exists():
        path, qualname = Path(head), tail
    if path.is_dir():
        raise WrongUsage(f"{path} is a directory; give the path of a Python file")
    if not path.exists():
        raise WrongUsage(f"{path} does not exist")
    return Where(path, qualname)


def need(*modules: str) -> None:
    """Raises ModuleNotFoundError, before anything is done, for the first of these that is not installed."""
    for module in modules:
        if not installed(module):
            raise ModuleNotFoundError(f"No module named {module!r}", name=module)


def say_error(sentence: str) -> None:
    """One line on standard error."""
    print(f"mugraph: {' '.join(sentence.split())}", file=sys.stderr, flush=True)


def print_json(document: object) -> None:
    """The one document of --json."""
    json.dump(document, sys.stdout, indent=2, ensure_ascii=False, allow_nan=False)
    sys.stdout.write("\n")
    sys.stdout.flush()


class _Log(logging.Handler):
    """Prints to what standard error is at that time: a progress bar replaces it."""

    def emit(self, record: logging.LogRecord) -> None:
        print(self.format(record), file=sys.stderr, flush=True)


def show_log() -> None:
    """From now on, what is logged at level info or above is on standard error."""
    logger = logging.getLogger("mugraph")
    logger.setLevel(logging.INFO)
    if not any(isinstance(handler, _Log) for handler in logger.handlers):
        handler = _Log()
        handler.setFormatter(logging.Formatter("%(levelname)s %(name)s: %(message)s"))
        logger.addHandler(handler)
        logger.propagate = False
