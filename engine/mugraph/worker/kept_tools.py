"""What searches work with, kept from one to the next: on a machine with a GPU, its processes take ten seconds to start.

They hold memory, here and on the device. So what lies there is released after each search, and they are ended when no
search has come for some time, or when one comes that needs others.
"""

from __future__ import annotations

import contextlib
import logging

from mugraph.giving_up import GivingUp
from mugraph.options import Options
from mugraph.pipeline import working
from mugraph.solve.tools import Tools
from mugraph.targets import Target
from mugraph.tune.device import Device

_log = logging.getLogger("mugraph.worker")

IDLE_S = 180.0
"""Without a search, after which the processes are ended."""
_SEARCHES = 100
"""After so many the processes are others: not all of what kernels leave in a process is ever given back."""


class KeptTools:
    """Of one thread, but for `giving_up` and `pids`."""

    def __init__(self) -> None:
        self.giving_up = GivingUp()
        self._asked: tuple[Device, Target, Options] | None = None
        self._tools: Tools | None = None
        self._searches = 0
        self._held = contextlib.ExitStack()

    @property
    def held(self) -> bool:
        return self._tools is not None

    @property
    def pids(self) -> list[int]:
        """Of the processes that run now."""
        tools = self._tools
        return tools.pids if tools is not None else []

    def of(self, device: Device, target: Target, options: Options) -> Tools:
        """For a search that begins: those of the last one, if it was asked for in the same way. Raises
        executors.executor.CannotExecute."""
        asked = device, target, options
        if self._tools is None or self._asked != asked or self._searches >= _SEARCHES:
            self.close()
            self._tools = self._held.enter_context(working(device, target, options, self.giving_up))
            self._asked = asked
        self._searches += 1
        self._tools.begin_run()
        return self._tools

    def rest(self, *, soon_again: bool) -> None:
        """After a search, of which nothing is given up any more: releases memory, and ends what has run the user's
        code. soon_again: what was ended begins again now, so that it is ready by the next search"""
        tools = self._tools
        if tools is None:
            return
        if tools.executor is not None:  # its processes may be anywhere, and hold what is not known here
            self.close()
            return
        tools.release()
        if tools.peers is not None:
            tools.peers.renew(begin=soon_again)

    def close(self) -> None:
        """Ends the processes."""
        if self._tools is None:
            return
        _log.debug("the processes of searches are ended")
        self._tools, self._asked, self._searches = None, None, 0
        self._held.close()
