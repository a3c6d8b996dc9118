"""The device is looked for, and what a run works with is started, while the run's file is traced.

PyTorch takes seconds to import, here and in the process that traces, and neither needs anything of the other.
"""

from __future__ import annotations

import contextlib
import threading
from collections.abc import Callable, Generator
from concurrent.futures import Future, ThreadPoolExecutor
from contextlib import AbstractContextManager
from dataclasses import dataclass

from mugraph.options import Options
from mugraph.solve.tools import Tools
from mugraph.targets import Target
from mugraph.tune.device import Device, detect, resolve

Working = Callable[[Device, Target, Options], AbstractContextManager[Tools]]


@dataclass(frozen=True)
class Ready:
    device: Device
    target: Target
    tools: Tools


class Beginning:
    def __init__(self, look: Callable[[threading.Event], Ready], thread: ThreadPoolExecutor) -> None:
        self._soon = threading.Event()
        self._found: Future[Ready] = thread.submit(look, self._soon)

    def soon(self) -> None:
        """Something will be searched: what takes long to start is started as soon as the device is known."""
        self._soon.set()
        if self._found.done() and self._found.exception() is None:
            self._found.result().tools.begin_early()

    def ready(self) -> Ready:
        """Waits. Raises tune.device.UnknownTarget and executors.executor.CannotExecute."""
        found = self._found.result()
        found.tools.spent.here()  # another thread has made it
        return found


@contextlib.contextmanager
def beginning(options: Options, working: Working, tools: Tools | None = None) -> Generator[Beginning]:
    """What was started ends with it. tools: of a run over several files; None: `working` makes those of this one."""
    with contextlib.ExitStack() as stack, ThreadPoolExecutor(1, "device") as thread:

        def look(soon: threading.Event) -> Ready:
            device = detect()
            target = resolve(options.target, device)
            found = tools or stack.enter_context(working(device, target, options))
            if soon.is_set():
                found.begin_early()
            return Ready(device, target, found)

        yield Beginning(look, thread)
