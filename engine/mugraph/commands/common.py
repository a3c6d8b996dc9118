"""What the commands share: paths with a name, errors as one sentence, JSON on standard output."""

from __future__ import annotations

import json
import re
import sys
from dataclasses import dataclass
from pathlib import Path

OK, FAILED, USAGE = 0, 1, 2


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


def say_error(sentence: str) -> None:
    """One line on standard error."""
    print(f"mugraph: {' '.join(sentence.split())}", file=sys.stderr, flush=True)


def print_json(document: object) -> None:
    """The one document of --json."""
    json.dump(document, sys.stdout, indent=2, ensure_ascii=False, allow_nan=False)
    sys.stdout.write("\n")
    sys.stdout.flush()
