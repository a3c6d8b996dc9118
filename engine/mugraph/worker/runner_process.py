"""The front's side of the runner: start it, give it orders, end it with all it has started."""

from __future__ import annotations

import contextlib
import logging
import queue
import subprocess
import sys
import threading
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import BinaryIO, cast

from mugraph.one_thread import with_one_thread
from mugraph.scratch import Scratch, inside, scratch
from mugraph.worker.frames import Order, Word, read, write
from mugraph.worker.processes import kill_children, kill_tree, reap, stop

_log = logging.getLogger("mugraph.worker")

COMMAND = (sys.executable, "-P", "-m", "mugraph.worker.runner")  # -P: the workspace's files must not hide ours


@dataclass(frozen=True)
class Heard:
    """generation: of the runner that said it; a word of one that was killed meanwhile counts no more."""

    generation: int
    word: Word


@dataclass(frozen=True)
class RunnerGone:
    """status: as Popen has it, negative for a signal."""

    generation: int
    status: int


class RunnerProcess:
    def __init__(self, tell: Callable[[Heard | RunnerGone], None], command: tuple[str, ...] = COMMAND) -> None:
        self._tell = tell
        self._command = command
        self._process: subprocess.Popen[bytes] | None = None
        self._scratch: Scratch | None = None
        self._orders: queue.SimpleQueue[Order | None] = queue.SimpleQueue()
        self.generation = 0

    @property
    def pid(self) -> int | None:
        return self._process.pid if self._process is not None else None

    def start(self) -> None:
        """A new one, if there is none. Raises OSError."""
        if self._process is not None:
            return
        self.generation += 1
        self._scratch = scratch("runner")
        self._process = subprocess.Popen(
            self._command,
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            env=with_one_thread(inside(self._scratch)),
            start_new_session=True,
            bufsize=0,
        )
        self._orders = queue.SimpleQueue()
        ends = self._process, self.generation, self._orders
        for work in (self._listen, self._dictate):
            threading.Thread(target=work, args=ends, name=f"runner {self.generation}", daemon=True).start()

    def order(self, order: Order) -> None:
        """Never waits: a runner that is still starting does not read yet, and one that has died says so itself."""
        self._orders.put(order)

    def halt(self) -> None:
        """Stops the runner where it is, until it is killed."""
        if self._process is not None:
            stop(self._process.pid)

    def kill(self) -> None:
        """Ends it now; nothing more is heard of it."""
        process, self._process = self._process, None
        if process is None:
            return
        self.generation += 1
        self._orders.put(None)
        killed = kill_tree(process.pid)
        process.wait()
        # What the runner had started has become ours by its death.
        self._clear_up([pid for pid in killed if pid != process.pid])

    def forget(self) -> None:
        """After RunnerGone: what it had started goes too."""
        self._process = None
        self._orders.put(None)
        orphans = kill_children()
        self._clear_up(orphans.children + orphans.others)

    def _clear_up(self, killed: Sequence[int]) -> None:
        """Removes what the runner and those it had started have left."""
        scratch, self._scratch = self._scratch, None

        def work() -> None:
            reap(killed)
            if scratch is not None:
                scratch.cleanup()

        threading.Thread(target=work, name="clearing up", daemon=True).start()

    def _dictate(
        self, process: subprocess.Popen[bytes], generation: int, orders: queue.SimpleQueue[Order | None]
    ) -> None:
        # OSError, ValueError: the runner has died, which `_listen` finds
        with contextlib.suppress(OSError, ValueError), cast(BinaryIO, process.stdin) as stdin:
            while (order := orders.get()) is not None:
                write(stdin.fileno(), order)

    def _listen(self, process: subprocess.Popen[bytes], generation: int, orders: object) -> None:
        descriptor = cast(BinaryIO, process.stdout).fileno()
        try:
            while (word := read(descriptor)) is not None:
                self._tell(Heard(generation, cast(Word, word)))
        except Exception:  # `read` knows of an end; this is a message that is none, and the runner goes for it
            _log.warning("the runner said what cannot be read", exc_info=True)
            process.kill()
        self._tell(RunnerGone(generation, process.wait()))
