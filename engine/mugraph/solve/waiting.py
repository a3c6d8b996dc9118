"""Nothing is measured while PyTorch's compilers work on the same device."""

from __future__ import annotations

from collections.abc import Callable, Generator

from mugraph.events import Event, Working
from mugraph.solve.tools import Tools

_LOOK_S = 0.1


def waited(tools: Tools, region: int, cancelled: Callable[[], bool]) -> Generator[Event, None, None]:
    """Until the region's peers are compiled. region: its number, for events"""
    if tools.peers is None or tools.peers.done(0):
        return
    yield Working(region, "waiting for torch.compile of what the kernel is compared with")
    with tools.on("peers"):
        while not tools.peers.done(_LOOK_S) and not cancelled():
            pass
