"""Where the details of an internal error go: people see one sentence that names the file."""

from __future__ import annotations

import time
import traceback
from pathlib import Path

from mugraph.store.place import cache_folder


def log_path() -> Path:
    return cache_folder() / "mugraph.log"


def note(error: BaseException, doing: str) -> str:
    """Append the error with its traceback to the log. The log's path, or where the error is if it cannot be written."""
    path = log_path()
    text = "".join(traceback.format_exception(error))
    try:
        path.parent.mkdir(parents=True, exist_ok=True)
        with path.open("a", encoding="utf-8") as log:
            log.write(f"{time.strftime('%Y-%m-%d %H:%M:%S')} {doing}\n{text}\n")
    except OSError:
        frame = traceback.extract_tb(error.__traceback__)[-1]
        return f"{Path(frame.filename).name}, line {frame.lineno} (the log {path} cannot be written)"
    return str(path)
