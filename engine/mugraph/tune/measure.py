"""Measure code on the current GPU, in a process that may die."""

from __future__ import annotations

import contextlib
import logging
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, field, replace
from types import TracebackType
from typing import Self

from mugraph.sharing import beside, turn
from mugraph.stopwatch import Stopwatch
from mugraph.tune.messages import (
    REPLAYS,
    Agree,
    Agreed,
    Applied,
    CallEach,
    Digits,
    Drop,
    Enter,
    Failure,
    Hello,
    InputSpec,
    Kept,
    Prepare,
    Replay,
    Reply,
    Request,
    Slow,
    Subject,
    Timed,
)
from mugraph.tune.process import ChildProcess, Unavailable
from mugraph.tune.statistics import Summary, summarise

_log = logging.getLogger("mugraph.tune")
# Seconds. A kernel that has not finished by then hangs; torch.compile's max-autotune compiles for minutes.
AGREE_S = 60.0
PREPARE_S = {"none": 60.0, "default": 180.0, "max-autotune-no-cudagraphs": 420.0, REPLAYS: 180.0}
REPLAY_S = 60.0
ENTER_S = 120.0
SLOW = 3.0
"""What takes so many times the best candidate's time is not timed more closely."""
_LOT, _LOT_BYTES = 4, 8 << 30
"""Kernels that are made ready together at most, and bytes that their outputs may have together."""
METHOD = "CUDA graph replay, cold L2 (inputs rotated over 4x the cache), median"
CALLED = "wall time of a call in eager mode, one after the other, median"


@dataclass(frozen=True, slots=True)
class Refused:
    """A subject without a time, and why (one sentence). memory: there was too little of it beside the others"""

    reason: str
    memory: bool = False


Results = dict[str, Summary | Refused]


@dataclass(frozen=True)
class Compared:
    """device: times on the device alone, of one interleaved run; called: as a program calls it, likewise.
    not_entered: why what the program calls could not be built with its own objects: then the kernels' own function is
    what was called, without the guards of the objects. None where it was built
    alone: those for which there was too little memory beside the others, and that were timed after them"""

    device: Results
    called: Results = field(default_factory=dict[str, Summary | Refused])
    not_entered: str | None = None
    alone: tuple[str, ...] = ()


class Measurer:
    """One measuring process, restarted whenever a kernel breaks it. Use as a context manager."""

    def __init__(self, child: Callable[[], ChildProcess] = ChildProcess) -> None:
        self._child = child()
        self._kept: dict[str, tuple[Subject, tuple[InputSpec, ...], Reply]] = {}
        self._ran_users_code = False
        self.spent = Stopwatch()

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self.close()

    def close(self) -> None:
        self._child.close()

    @property
    def pid(self) -> int | None:
        """Of the process, while it runs."""
        return self._child.pid

    def begin(self) -> None:
        """Start the process without waiting for it. Raises process.Unavailable."""
        self._child.begin()

    def end(self) -> None:
        """End the process, whatever it does. The next question starts another."""
        self._kept.clear()
        self._ran_users_code = False
        self._child.kill()

    @property
    def ran_users_code(self) -> bool:
        """Whether the process has: it knows modules as they were then, and may have started something."""
        return self._ran_users_code and self._child.running

    def keep(self, subject: Subject, inputs: Sequence[InputSpec]) -> bool:
        """Compile and capture it now, for a comparison later. Whether it can be measured."""
        reply = self._ask(Prepare(subject, tuple(inputs)), PREPARE_S[subject.compiler])
        self._kept[subject.name] = (subject, tuple(inputs), reply)
        return not isinstance(reply, Failure)

    def is_kept(self, subject: Subject) -> bool:
        kept = self._kept.get(subject.name)
        return kept is not None and kept[0] == subject and self._child.running

    def forget(self) -> None:
        """What was kept."""
        if self._kept:
            self._ask(Drop(tuple(self._kept)), REPLAY_S)
            self._kept.clear()

    def release(self) -> None:
        """What lies on the device for further measurements."""
        self._kept.clear()
        if self._child.answers:  # one that still starts has nothing there
            self._ask(Drop(()), REPLAY_S)

    def _ask(self, request: Request, timeout_s: float, *, in_turn: bool = False) -> Reply:
        """in_turn: of one that the caller has"""
        with contextlib.suppress(Unavailable), self.spent.on("waiting"):  # which the question is told
            self._child.start()
        own = contextlib.nullcontext() if in_turn else _turn(request, self.spent)
        with own, self.spent.on("measuring"):
            reply = self._child.ask(request, timeout_s)
        if isinstance(reply, Failure) and reply.fatal:  # what was kept is gone with the process
            self._kept.clear()
        elif isinstance(request, Enter):
            self._ran_users_code = True
        return reply

    def hello(self) -> Hello:
        """Device and versions. Raises process.Unavailable."""
        return self._child.start()

    def measure_kernel(
        self, subject: Subject, inputs: Sequence[InputSpec], rounds: int = 20, limit_us: float | None = None
    ) -> Summary | Refused:
        """Microseconds of one launch. Says nothing of whether the results are right: the caller checks that (in
        another process) before it lets the time count. limit_us: what takes longer is launched once or twice."""
        return self.compare([subject], inputs, rounds, limit_us=limit_us)[subject.name]

    def at_once(self, output_bytes: int) -> int:
        """How many kernels are to be made ready before they are timed: where others share the device, several, so that
        there are fewer turns to wait for. output_bytes: that each leaves on the device"""
        return max(1, min(_LOT, _LOT_BYTES // max(1, output_bytes))) if beside() > 1 else 1

    def measure_kernels(
        self,
        kernels: Sequence[tuple[Subject, tuple[InputSpec, ...]]],
        rounds: int = 20,
        best_us: float | None = None,
        together: int = 1,
    ) -> Iterator[Summary | Refused]:
        """Of several, in their order, each when it is asked for. best_us: of what they are to be faster than.
        together: so many are made ready before they are timed"""
        best = best_us
        for first in range(0, len(kernels), together):
            lot = kernels[first : first + together]
            limit_us = None if best is None else SLOW * best
            for found in self._measured_lot(lot, rounds, limit_us):
                if isinstance(found, Summary):
                    best = min(found.median_us, best or found.median_us)
                yield found

    def _measured_lot(
        self, lot: Sequence[tuple[Subject, tuple[InputSpec, ...]]], rounds: int, limit_us: float | None
    ) -> Iterator[Summary | Refused]:
        """One of them may cost the others their process: then each is measured alone."""
        if len(lot) > 1 and len({inputs for _, inputs in lot}) == 1:
            # Kernels of one program may have one name.
            numbered = [replace(one, name=f"{number} {one.name}") for number, (one, _) in enumerate(lot)]
            found = self.compare(numbered, lot[0][1], rounds, limit_us=limit_us)
            results = [found[subject.name] for subject in numbered]
            if any(isinstance(one, Summary) for one in results):
                yield from results
                return
        for subject, inputs in lot:
            yield self.measure_kernel(subject, inputs, rounds, limit_us)

    def agree(self, subject: Subject, reference: Subject, inputs: Sequence[InputSpec]) -> Agreed | Refused:
        """Whether two subjects give the same on the same inputs, in the precision of their outputs.

        Asked once more where it cost the process: CUDA reports what an earlier kernel did to whoever comes next.
        """
        request = Agree(subject, reference, tuple(inputs))
        reply = self._ask(request, AGREE_S)
        if isinstance(reply, Failure) and reply.fatal:
            _log.info("compared once more in a new process: %s", reply.reason)
            reply = self._ask(request, AGREE_S)
        return reply if isinstance(reply, Agreed) else _refused(reply)

    def keeps_digits(self, subject: Subject, inputs: Sequence[InputSpec]) -> bool | None:
        """Whether a subject that may take TF32 keeps float32's digits on the device. None where it cannot be told."""
        reply = self._ask(Digits(subject, tuple(inputs)), AGREE_S)
        if isinstance(reply, Kept):
            return reply.digits
        _log.info("it is not known how %s rounds: %s", subject.name, _refused(reply).reason)
        return None

    def compare(
        self,
        subjects: Sequence[Subject],
        inputs: Sequence[InputSpec],
        rounds: int = 40,
        progress: Callable[[str], None] | None = None,
        limit_us: float | None = None,
    ) -> dict[str, Summary | Refused]:
        """Times of all subjects in one interleaved run; one that fails is Refused and the others go on; one for which
        there is too little memory beside them is timed after them. limit_us: what takes longer has the time of one
        launch."""
        results, names = self._prepared(subjects, inputs, progress, limit_us)
        names = self._replayed(subjects, names, inputs, rounds, results)
        self._dropped(names)
        for subject in self._short_of_memory(subjects, results):
            self._dropped(self._alone(subject, inputs, rounds, results))
        return results

    def compare_called(
        self,
        subjects: Sequence[Subject],
        inputs: Sequence[InputSpec],
        ours: str,
        applied: Applied | None,
        rounds: int = 40,
        reference: Subject | None = None,
        progress: Callable[[str], None] | None = None,
    ) -> Compared:
        """On the device alone, and as a program calls them; of what replays graphs of its own the second time only.

        applied: what the program calls in place of the subject called `ours`; None where there is no such text.
        reference: what that is compared with on the program's own tensors
        """
        device, names = self._prepared(subjects, inputs, progress)
        names = self._replayed(subjects, names, inputs, rounds, device)
        called: Results = {}
        why = None
        enter = Enter(ours, applied, reference) if applied is not None else None
        if ours in names:
            failed = self._entered(enter)
            why = failed.reason if failed is not None else None
            if failed is not None and failed.fatal:  # what was ready is gone with the process
                _, names = self._prepared([one for one in subjects if one.name in names], inputs, None)
        self._timed(CallEach(names, rounds), called)
        self._dropped(names)
        alone: list[str] = []
        for subject in self._short_of_memory(subjects, device):
            for name in self._alone(subject, inputs, rounds, device):
                failed = self._entered(enter) if name == ours else None
                why = failed.reason if failed is not None else why
                again = self._alone(subject, inputs, 0, device) if failed is not None and failed.fatal else (name,)
                self._timed(CallEach(again, rounds), called)
                self._dropped(again)
                alone.append(name)
        return Compared(device, called, why, tuple(alone))

    def _entered(self, enter: Enter | None) -> Failure | None:
        """Why what the program calls could not be built. enter: None where there is no edit"""
        if enter is None:
            return Failure("it has no edit")
        reply = self._ask(enter, ENTER_S + (AGREE_S if enter.reference is not None else 0.0))
        return reply if isinstance(reply, Failure) else None

    def _prepared(
        self,
        subjects: Sequence[Subject],
        inputs: Sequence[InputSpec],
        progress: Callable[[str], None] | None,
        limit_us: float | None = None,
    ) -> tuple[Results, tuple[str, ...]]:
        """Those that cannot be measured or are not measured further, and the names of those that are ready."""
        results: Results = {}
        ready: list[Subject] = []
        # Of several kernels in one turn: each of its own would wait for all who time meanwhile.
        shared = len(subjects) > 1 and all(subject.compiler == "none" for subject in subjects)
        with turn(alone=False, spent=self.spent) if shared else contextlib.nullcontext():
            for subject in subjects:
                if progress is not None:
                    progress(subject.name)
                reply = self._prepare(subject, ready, inputs, results, limit_us, in_turn=shared)
                if isinstance(reply, Failure):
                    results[subject.name] = _refused(reply)
                elif isinstance(reply, Slow):
                    results[subject.name] = Summary(reply.us, 0.0, 1)
                else:
                    ready.append(subject)
        return results, tuple(subject.name for subject in ready)

    def _replayed(
        self,
        subjects: Sequence[Subject],
        names: tuple[str, ...],
        inputs: Sequence[InputSpec],
        rounds: int,
        results: Results,
    ) -> tuple[str, ...]:
        """On the device alone; the names of those that are ready then. Where that costs the process, those are made
        ready once more that have no graphs of their own: which of them all broke it is not known."""
        called_only = {one.name for one in subjects if one.compiler == REPLAYS}
        request = Replay(tuple(name for name in names if name not in called_only), rounds)
        reply = self._timed(request, results)
        if not isinstance(reply, Failure) or not reply.fatal:
            return names
        _log.info("timed once more in a new process: %s", reply.reason)
        again = [one for one in subjects if one.name in request.names]
        failed, ready = self._prepared(again, inputs, None)
        self._timed(Replay(ready, rounds), results)
        results |= failed | {name: _refused(reply) for name in names if name in called_only}
        return ready

    def _timed(self, request: Replay | CallEach, results: Results) -> Reply | None:
        if not request.names:
            return None
        timed = self._ask(request, REPLAY_S + request.rounds)
        for name in request.names:
            results[name] = summarise(timed.samples[name]) if isinstance(timed, Timed) else _refused(timed)
        return timed

    def _short_of_memory(self, subjects: Sequence[Subject], device: Results) -> list[Subject]:
        """Those for which there was too little memory beside the others. Nothing else is ready then."""
        found = [one for one in subjects if isinstance(own := device.get(one.name), Refused) and own.memory]
        if not found or len(subjects) == 1:
            return []
        self.forget()
        return found

    def _alone(self, subject: Subject, inputs: Sequence[InputSpec], rounds: int, device: Results) -> tuple[str, ...]:
        """Its name, where it is ready then; timed on the device, in so many rounds."""
        failed, ready = self._prepared([subject], inputs, None)
        device |= failed
        if ready and subject.compiler != REPLAYS and rounds:
            self._timed(Replay(ready, rounds), device)
        return ready

    def _dropped(self, names: tuple[str, ...]) -> None:
        """But for what is kept: a region may be compared once more."""
        others = tuple(name for name in names if name not in self._kept)
        if others:
            self._ask(Drop(others), REPLAY_S)

    def _prepare(
        self,
        subject: Subject,
        ready: list[Subject],
        inputs: Sequence[InputSpec],
        results: Results,
        limit_us: float | None,
        *,
        in_turn: bool,
    ) -> Reply:
        """Prepare one more, unless it was kept; when that costs the process, prepare the others again in the new
        one. in_turn: the device is this process's to launch on"""
        kept = self._kept.get(subject.name)
        if kept is not None and kept[:2] == (subject, tuple(inputs)):
            return kept[2]
        reply = self._ask(Prepare(subject, tuple(inputs), limit_us), PREPARE_S[subject.compiler], in_turn=in_turn)
        if isinstance(reply, Failure) and reply.fatal:
            for earlier in list(ready):
                again = self._ask(Prepare(earlier, tuple(inputs)), PREPARE_S[earlier.compiler], in_turn=in_turn)
                if isinstance(again, Failure):
                    ready.remove(earlier)
                    results[earlier.name] = _refused(again)
        return reply


def _turn(request: Request, spent: Stopwatch) -> contextlib.AbstractContextManager[None]:
    """What is timed has the device alone. torch.compile is on it for moments only, but for the mode that measures."""
    match request:
        case Replay() | CallEach():
            return turn(alone=True, spent=spent)
        case Prepare():
            compiler = request.subject.compiler
            return contextlib.nullcontext() if compiler == "default" else turn(alone=compiler != "none", spent=spent)
        case Agree() | Digits():
            return turn(alone=False, spent=spent)
        case _:
            return contextlib.nullcontext()


def _refused(reply: Reply) -> Refused:
    if isinstance(reply, Failure):
        return Refused(reply.reason, reply.memory)
    return Refused("the measuring process answered out of turn")
