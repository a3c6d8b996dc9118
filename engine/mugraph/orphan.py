"""A process that ends with the one that started it, in the middle of whatever it does: nobody waits for it any more."""

from __future__ import annotations

import os
import threading
import time

_LOOK_S = 1.0
"""Seconds between two looks at whether the parent lives."""


def end_with_parent() -> None:
    """From now on. To be called early: whose parent has died already is not noticed."""
    threading.Thread(target=_end_with, args=(os.getppid(),), daemon=True).start()


def _end_with(parent: int) -> None:
    """An orphan has another parent."""
    while os.getppid() == parent:
        time.sleep(_LOOK_S)
    os._exit(1)
