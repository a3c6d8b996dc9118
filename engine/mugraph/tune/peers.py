"""PyTorch's own ways to run a region, compiled in a process of their own while the search runs.

torch.compile takes seconds and max-autotune minutes, and a search leaves the device alone: both together take as long
as the longer one. Nothing is measured while they compile, for max-autotune measures as well.
"""

from __future__ import annotations

import contextlib
import logging
import threading
import time
from collections.abc import Sequence

from mugraph.tune.measure import Measurer
from mugraph.tune.messages import InputSpec, Subject
from mugraph.tune.process import Unavailable

_log = logging.getLogger("mugraph.tune")
_ENDS_S = 0.05
"""How long a thread may take that has nothing to wait for, before its process is ended again."""
PATIENCE_S = 6.0
"""With what is compiled for a region that has no use for it any more. Its process is then ended, and another one takes
longer than this to be ready."""


class Peers:
    """measurer: of a process that is theirs alone. It keeps what is ready for the comparison that follows."""

    def __init__(self, measurer: Measurer, patience_s: float = PATIENCE_S) -> None:
        self.measurer = measurer
        self._patience_s = patience_s
        self._thread: threading.Thread | None = None
        self._used = False
        self._stopped = threading.Event()
        self._began = time.monotonic()
        self._begun: tuple[tuple[Subject, ...], tuple[InputSpec, ...]] = (), ()

    @property
    def seconds(self) -> float:
        """Since they were begun."""
        return time.monotonic() - self._began

    @property
    def times_itself(self) -> bool:
        """Whether a compiler is among them that times its own choices on the device."""
        return any(subject.compiler not in ("none", "default") for subject in self._begun[0])

    @property
    def is_ready(self) -> bool:
        """Whether all that was begun last is compiled, and is kept for a comparison."""
        return bool(self._begun[0]) and self.done(0) and all(map(self.measurer.is_kept, self._begun[0]))

    def begin(self, subjects: Sequence[Subject], inputs: Sequence[InputSpec]) -> None:
        """Compile these, in the background. What an earlier region left is given up; what is ready stays, and so does
        what the same was begun with before."""
        begun = tuple(subjects), tuple(inputs)
        if begun == self._begun and self.is_ready:
            return
        more = bool(self._begun[0]) and begun[1] == self._begun[1] and set(self._begun[0]) <= set(begun[0])
        self._used = True
        self._began, self._begun = time.monotonic(), begun
        self._stopped.set()
        self._stopped = threading.Event()
        self._thread = threading.Thread(
            target=self._compile,
            args=(*self._begun, self._thread, self._stopped, more),
            name="mugraph-peers",
            daemon=True,
        )
        self._thread.start()

    def _compile(
        self,
        subjects: Sequence[Subject],
        inputs: tuple[InputSpec, ...],
        before: threading.Thread | None,
        stopped: threading.Event,
        more: bool,
    ) -> None:
        """before: what was begun earlier. more: these are those and others, so that they are waited for"""
        try:
            self._await(before, None if more else self._patience_s)
            if not stopped.is_set() and not more:
                self.measurer.forget()
            for subject in subjects:
                if stopped.is_set():
                    return
                if not self.measurer.is_kept(subject):
                    self.measurer.keep(subject, inputs)
        except Exception as error:  # a process ended under us; whoever compares asks again, and is told
            _log.info("PyTorch's own code could not be compiled ahead: %s: %s", type(error).__name__, error)

    def _await(self, before: threading.Thread | None, patience_s: float | None) -> None:
        """The end of what was begun; not for long where it is given up."""
        if before is None:
            return
        before.join(patience_s)
        while before.is_alive():
            self.measurer.end()  # its question is answered with a failure
            before.join(_ENDS_S)

    def done(self, timeout_s: float | None = None) -> bool:
        """Whether they are compiled, or have failed to: then the device is quiet."""
        if self._thread is None:
            return True
        self._thread.join(timeout_s)
        if self._thread.is_alive():
            return False
        self._thread = None
        return True

    def release(self) -> None:
        """What lies on the device. What is still being compiled is given up."""
        self._end()
        self.measurer.release()

    def renew(self, *, begin: bool = True) -> None:
        """After `release`: end the process where it has run the user's code. begin: another one, without waiting for
        it, in place of that and of one that has ended while it compiled"""
        if self.measurer.ran_users_code:
            self.measurer.end()
        if begin and self._used:
            with contextlib.suppress(Unavailable):  # the first that needs it is told
                self.measurer.begin()

    def close(self) -> None:
        self._end()
        self.measurer.close()

    def _end(self) -> None:
        """Of what is being compiled: the process with it, unless it is done."""
        self._stopped.set()
        while not self.done(_ENDS_S):
            self.measurer.end()
