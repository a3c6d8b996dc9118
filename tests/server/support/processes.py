"""Processes that should be gone, and a machine that others use as well."""

from __future__ import annotations

import os
import time
from collections.abc import Sequence

import psutil


def wait_gone(processes: Sequence[psutil.Process], seconds: float) -> list[psutil.Process]:
    """Those that are left after that time. A zombie is gone: only its parent has not looked yet."""
    deadline = time.monotonic() + seconds
    left = list(processes)
    while left and time.monotonic() < deadline:
        left = [process for process in left if _lives(process)]
        time.sleep(0.02)
    return left


def slack() -> float:
    """How much longer things take because others use the machine as well; 1 on one that is ours alone."""
    return max(1.0, os.getloadavg()[0] / (os.cpu_count() or 1))


def _lives(process: psutil.Process) -> bool:
    try:
        return process.is_running() and process.status() != psutil.STATUS_ZOMBIE
    except psutil.Error:
        return False
