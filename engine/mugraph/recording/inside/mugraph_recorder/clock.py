"""How much of the run the functions take: wall time, and time on the device.

A call that is looked at is timed from its first statement to its last (`begin`, `end`), and counts for as many calls
as it stands for. Time on a device is between two events on its stream, read when the device has passed them: nobody
waits for it. Only calls of the thread that made the first one are timed. What the recorder itself takes is left out.
"""

from __future__ import annotations

import sys
import threading
import time
from collections.abc import Callable
from dataclasses import dataclass
from types import CodeType, FrameType
from typing import Any

from .passed import Passed

NOBODY = -1
"""In the builtin list of open calls, below the first."""
MOST_PENDING = 256
"""Pairs of events that wait to be read; while there are so many, calls are not timed on the device."""
FARTHEST_CALLER = 40
"""Frames above a call in which the function is looked for that called it."""
TELL_EVERY_S = 5.0


@dataclass(eq=False)
class _Seconds:
    """Of calls. own: less what other watched functions took that they called."""

    total: float = 0.0
    own: float = 0.0
    calls: int = 0


class Time:
    """Of one set of arguments. A first call sets up much that no other does: where there are others, it counts as one
    of them, if it took longer. device: seconds on the device, of `device_calls` calls."""

    def __init__(self) -> None:
        self.first = _Seconds()
        self.rest = _Seconds()
        self.device = 0.0
        self.device_calls = 0

    @property
    def total(self) -> float:
        return self._scaled(self.first.total, self.rest.total)

    @property
    def own(self) -> float:
        return self._scaled(max(0.0, self.first.own), max(0.0, self.rest.own))

    @property
    def excess(self) -> float:
        """What the first call took more than the others."""
        return max(0.0, self.first.total - self.rest.total / self.rest.calls) if self.rest.calls else 0.0

    def _scaled(self, first: float, rest: float) -> float:
        return rest + min(first, rest / self.rest.calls * self.first.calls) if self.rest.calls else first


@dataclass(eq=False)
class _Call:
    slot: int
    frame: int
    time: Time
    weight: int
    outermost: bool
    caller: _Seconds | None
    own: _Seconds
    lost: float
    since: float
    event: Any


class Clock:
    """open: the builtin list; its last item is the slot of the innermost timed call, which `end` ends. tell: called
    now and then, so that a program that is killed loses little."""

    def __init__(
        self, tell: Callable[[], None], now: Callable[[], float] = time.perf_counter, passed: Passed | None = None
    ) -> None:
        self.open: list[int] = [NOBODY]
        self._tell = tell
        self._now = now
        self._passed = passed if passed is not None else Passed()
        self.forget()

    def forget(self) -> None:
        """Begins anew, as a child made by fork does."""
        self.open[1:] = []
        self._calls: list[_Call] = []
        self._codes: dict[CodeType, int] = {}
        self._last_of: dict[int, _Seconds] = {}
        self._top: dict[int, Time] = {}
        self._pending: list[tuple[Time, int, Any, Any]] = []
        self._thread: int | None = None
        self._lost = 0.0
        self._first: float | None = None
        self._last = self._told = 0.0

    @property
    def run(self) -> float:
        """Seconds from the first timed call to the end of the last, without the recorder's, and without what only the
        first calls took."""
        if self._first is None:
            return 0.0
        return max(0.0, self._last - self._first - self._lost - sum(one.excess for one in self._top.values()))

    def apart(self, work: Callable[[], Any]) -> Any:
        """Does what the recorder does, on nobody's time."""
        since = self._now()
        try:
            return work()
        finally:
            if self._first is not None:
                self._lost += self._now() - since

    def begin(self, slot: int, frame: FrameType, of: Time, weight: int, on_device: bool) -> None:
        """A call that runs in `frame` begins. weight: how many calls it stands for"""
        me = threading.get_ident()
        if self._thread is None:
            self._thread = me
        if me != self._thread:
            return
        codes = self._codes
        codes[frame.f_code] = slot
        above, left = frame.f_back, FARTHEST_CALLER
        while above is not None and left and above.f_code not in codes:
            above, left = above.f_back, left - 1
        caller = self._last_of.get(codes[above.f_code]) if above is not None and left else None
        outermost = slot not in self.open
        own = of.rest if of.first.calls else of.first
        self._last_of[slot] = own
        if not self._calls:
            self._top[id(of)] = of
        event = None
        if on_device and outermost and len(self._pending) < MOST_PENDING:
            event = self._event()
        since = self._now()
        if self._first is None:
            self._first = self._told = since
        self._calls.append(_Call(slot, id(frame), of, weight, outermost, caller, own, self._lost, since, event))
        self.open.append(slot)

    def end(self) -> None:
        """A call ends of the function that the innermost timed call is of: that one, or one within it."""
        if threading.get_ident() != self._thread or not self._calls:
            return
        call = self._calls[-1]
        if id(sys._getframe(1)) != call.frame:  # pyright: ignore[reportPrivateUsage]
            return
        now = self._now()
        self._calls.pop()
        self.open.pop()
        self._last = now
        took = max(0.0, now - call.since - (self._lost - call.lost)) * call.weight
        call.own.calls += call.weight
        if call.outermost:
            call.own.total += took
        call.own.own += took
        if call.caller is not None:
            call.caller.own -= took
        if call.event is not None:
            stop = self._event()
            if stop is not None:
                self._pending.append((call.time, call.weight, call.event, stop))
            if len(self._pending) >= MOST_PENDING // 2:
                self.apart(self.read)
        if now - self._told > TELL_EVERY_S:
            self._told = now
            self.apart(self._tell)

    def read(self) -> None:
        """Takes the times of events that the device has passed."""
        waiting: list[tuple[Time, int, Any, Any]] = []
        for pair in self._pending:
            of, weight, start, stop = pair
            try:
                if not stop.query():
                    waiting.append(pair)
                    continue
                of.device += start.elapsed_time(stop) / 1e3 * weight
                of.device_calls += weight
            except Exception as error:  # the device has failed, or the events were captured in a graph
                self._passed.note("", "", "the time of a call on the device", error)
        self._pending = waiting

    def _event(self) -> Any:
        """An event of the current stream that has been recorded; None where that cannot be."""
        cuda: Any = getattr(sys.modules.get("torch"), "cuda", None)
        try:
            if cuda is None or not cuda.is_available() or cuda.is_current_stream_capturing():
                return None
            event = cuda.Event(enable_timing=True)
            event.record()
            return event
        except Exception as error:  # the user's program goes on without a time on the device
            self._passed.note("", "", "the time of a call on the device", error)
            return None
