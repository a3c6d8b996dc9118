"""Ends a process with everything it has started, whatever sessions and groups that is in."""

from __future__ import annotations

import contextlib
import ctypes
import logging
import os
import sys
import time
from collections.abc import Collection, Iterable
from dataclasses import dataclass

import psutil

_log = logging.getLogger("mugraph.worker")

_PR_SET_CHILD_SUBREAPER = 36


def adopt_orphans() -> None:
    """From now on a descendant whose parent dies becomes a child of this process, so that it can be found (Linux)."""
    if sys.platform == "linux":
        with contextlib.suppress(OSError, AttributeError):  # a C library without prctl: children are found all the same
            ctypes.CDLL(None, use_errno=True).prctl(_PR_SET_CHILD_SUBREAPER, 1, 0, 0, 0)


def descendants(pid: int) -> list[int]:
    try:
        return [child.pid for child in psutil.Process(pid).children(recursive=True)]
    except psutil.Error as error:  # it has ended
        _log.debug("process %d is not looked at: %s", pid, error)
        return []


def kill_tree(pid: int) -> list[int]:
    """Kills the process and all it has started; who was killed. Stopped first, so that nothing can fork meanwhile."""
    stop(pid)
    stopped = {pid}
    while new := [child for child in descendants(pid) if child not in stopped]:
        for child in new:
            stop(child)
        stopped.update(new)
    for one in stopped:
        with contextlib.suppress(psutil.Error):  # it has ended
            psutil.Process(one).kill()
    return sorted(stopped)


def stop(pid: int) -> None:
    """Stops a process where it is. Nothing happens if it has gone."""
    with contextlib.suppress(psutil.Error):
        psutil.Process(pid).suspend()


@dataclass(frozen=True)
class Killed:
    """children: of this process, for which somebody may be waiting. others: who become children of it by that."""

    children: tuple[int, ...] = ()
    others: tuple[int, ...] = ()


def kill_children(keep: int | None = None, spare: Collection[int] = ()) -> Killed:
    """Kills all that this process has started or adopted, and what that has started.

    keep:  a process of which only what it has started is killed
    spare: processes that stay with all that they have started
    """
    try:
        children = [child.pid for child in psutil.Process().children()]
        kept = [child.pid for child in psutil.Process(keep).children()] if keep in children else []
    except psutil.Error as error:
        _log.warning("the processes that were started are not known, and may be left: %s", error)
        return Killed()
    children = [child for child in children if child != keep and child not in spare]
    killed = [pid for child in children for pid in kill_tree(child)]
    for child in kept:  # who reaps them
        kill_tree(child)
    return Killed(tuple(children), tuple(pid for pid in killed if pid not in children))


def reap(pids: Iterable[int], wait_s: float = 1.0) -> None:
    """Takes note of the end of children, so that they do not stay as zombies. Whoever else waits for one of them learns
    only that it has gone."""
    if sys.platform == "win32":
        return  # which has no zombies
    left, deadline = set(pids), time.monotonic() + wait_s
    while left and time.monotonic() < deadline:
        for pid in list(left):
            try:
                if os.waitpid(pid, os.WNOHANG)[0] == pid:
                    left.discard(pid)
            except ChildProcessError:  # not ours, or not yet
                if not psutil.pid_exists(pid):
                    left.discard(pid)
        if left:
            time.sleep(0.005)
