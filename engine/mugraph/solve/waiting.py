"""Nothing is timed while PyTorch's compilers time their own choices on the same device."""

from __future__ import annotations

from collections.abc import Callable, Generator

from mugraph.events import Event, Working
from mugraph.solve.ending import NO_END, Ending
from mugraph.solve.tools import Tools

_LOOK_S = 0.1
PATIENCE_S = 5.0
"""Seconds for a compiler that times nothing, before kernels are measured beside it, where they have to be done in time
or need not be faster than what it makes: it takes a minute for a whole model, and is on the device for moments."""
_WAITING = "waiting for torch.compile of what the kernel is compared with"


def waited(
    tools: Tools, region: int, cancelled: Callable[[], bool], ending: Ending = NO_END
) -> Generator[Event, None, None]:
    """Until the region's peers are compiled; with an ending, not longer than it matters. region: for events"""
    peers = tools.peers
    if peers is None or peers.done(0):
        return
    yield Working(region, _WAITING)
    hurried = (ending.is_set or tools.compare_with == "code") and not peers.times_itself
    with tools.on("peers"):
        while not peers.done(_LOOK_S) and not cancelled():
            if hurried and peers.seconds > PATIENCE_S:
                break


def waited_within(tools: Tools, region: int, cancelled: Callable[[], bool]) -> Generator[Event, None, bool]:
    """Until they are compiled, or the file's time and a little more is over. Whether they are."""
    peers = tools.peers
    if peers is None or peers.done(0):
        return True
    yield Working(region, _WAITING)
    with tools.on("peers"), tools.file_time.counting():
        while not peers.done(_LOOK_S) and not cancelled():
            if tools.file_time.is_too_late_for_peers:
                return False
    return True
