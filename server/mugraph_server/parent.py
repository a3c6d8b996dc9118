"""The editor's process, watched: when it is gone, so are we, whatever else is going on."""

from __future__ import annotations

import os
import select
import threading
import time
from collections.abc import Callable

import psutil

from mugraph_server.log import logger

GRACE_S = 1.5
"""From the moment we know that we must end until we end by force."""


def watch(process_id: int, gone: Callable[[], None]) -> None:
    """Calls `gone`, from a thread, once the process has ended."""
    threading.Thread(target=_wait, args=(process_id, gone), name="editor watch", daemon=True).start()


def exit_within(seconds: float, status: int, last: Callable[[], None]) -> None:
    """End the process by force after that time, however busy it is. last: called just before."""

    def end() -> None:
        time.sleep(seconds)
        try:
            last()
        finally:
            os._exit(status)

    threading.Thread(target=end, name="hard exit", daemon=True).start()


def _wait(process_id: int, gone: Callable[[], None]) -> None:
    """Waits for its end. If we cannot see the process (an editor outside our container), the end of our input tells the
    same."""
    try:
        handle = os.pidfd_open(process_id)  # woken by the kernel: no polling while nothing happens
    except ProcessLookupError:
        logger.info("the editor (process %d) is not seen from here; the server ends with its input", process_id)
        return
    except (AttributeError, OSError) as error:  # not on every system
        logger.debug("the editor is looked for every second: %s", error)
        _poll(process_id)
    else:
        try:
            select.select([handle], [], [])
        finally:
            os.close(handle)
    gone()


def _poll(process_id: int) -> None:
    try:
        born = psutil.Process(process_id).create_time()
        while psutil.Process(process_id).create_time() == born:
            time.sleep(1)
    except psutil.Error as error:  # it has ended
        logger.debug("the editor (process %d) has gone: %s", process_id, error)
