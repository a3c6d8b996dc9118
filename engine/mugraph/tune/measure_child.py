"""The measuring process: answers one request after another on standard input until it ends or its GPU fails.

Run as `python -m mugraph.tune.measure_child [--compiles | --behind]`. Standard output carries frames only: file
descriptor 1 is moved away first, so that nothing a kernel or a library prints can get between them. With `--compiles`
torch.compile is made ready before the first question; with `--behind` other processes have the processors first.
"""

from __future__ import annotations

import contextlib
import gc
import logging
import os
import sys
import tempfile
import time
from collections.abc import Callable
from importlib.metadata import version
from pathlib import Path
from typing import Any, cast

from mugraph import child_log
from mugraph.pickled import read_frame, write_frame
from mugraph.too_little_memory import is_of_memory
from mugraph.tune.device_errors import is_fatal, one_line
from mugraph.tune.messages import (
    REPLAYS,
    Agree,
    CallEach,
    Digits,
    Drop,
    Enter,
    Failure,
    Hello,
    Ok,
    Prepare,
    Replay,
    Reply,
    Request,
    Slow,
    Subject,
    Timed,
    Warm,
)

_log = logging.getLogger("mugraph.tune")

COMPILES = "--compiles"
BEHIND = "--behind"
_NICE = 10
_LEAST_PART = 4
_ROUND_S = 0.012
"""Where a round takes longer, there are fewer of them, but no fewer than this part of those asked for: the median of
longer samples is as sure."""


def main() -> int:
    requests = os.fdopen(os.dup(0), "rb")
    replies = os.fdopen(os.dup(1), "wb")
    os.dup2(2, 1)
    child_log.write()
    if BEHIND in sys.argv[1:] and sys.platform != "win32":
        os.nice(_NICE)
    nothing = os.open(os.devnull, os.O_RDONLY)
    os.dup2(nothing, 0)
    with tempfile.TemporaryDirectory(prefix="mugraph-subjects-") as folder:
        make_ready = _begun() if COMPILES in sys.argv[1:] else None
        try:
            worker = _Worker(Path(folder))
            if make_ready is not None:
                make_ready()
            write_frame(replies, worker.hello())
        except Exception as error:
            _log.info("the measuring process cannot begin", exc_info=True)
            write_frame(replies, Failure(one_line(error), fatal=True))
            return 1
        while (request := read_frame(requests)) is not None:
            reply = worker.answer(request)  # pyright: ignore[reportArgumentType] - only our own requests come here
            write_frame(replies, reply)
            if isinstance(reply, Failure) and reply.fatal:
                return 1
    return 0


def _begun() -> Callable[[], None]:
    """Starts PyTorch's processes, before the device is looked for. What is left to do."""
    from mugraph.tune import inductor

    up = inductor.begin()
    return lambda: inductor.make_ready(up)


class _Worker:
    def __init__(self, folder: Path) -> None:
        import torch

        from mugraph.tune import timing

        if not torch.cuda.is_available():
            raise RuntimeError("PyTorch sees no CUDA device in the measuring process")
        self._torch = torch
        self._timing = timing
        self._folder = folder
        self._ready: dict[str, timing.Replayable] = {}
        self._called: dict[str, Callable[[], object]] = {}
        """What a program calls, in the place of a subject; and subjects that are not replayed."""
        properties: Any = cast(Any, torch.cuda).get_device_properties(torch.cuda.current_device())
        self._device = str(properties.name)
        self._l2 = int(getattr(properties, "L2_cache_size", 50 << 20))

    def hello(self) -> Hello:
        versions = {
            "torch": str(self._torch.__version__),
            "triton": version("triton"),
            "cuda": str(self._torch.version.cuda),
            "python": sys.version.split()[0],
        }
        return Hello(self._device, versions, self._l2)

    def answer(self, request: Request) -> Reply:
        try:
            match request:
                case Warm():
                    return self._warm(request)
                case Agree():
                    return self._agree(request)
                case Digits():
                    return self._digits(request)
                case Prepare():
                    return self._prepare(request)
                case Replay():
                    return self._replay(request)
                case Enter():
                    return self._enter(request)
                case CallEach():
                    return self._call_each(request)
                case Drop():
                    return self._drop(request)
        except Exception as error:
            _log.info("%s failed", type(request).__name__, exc_info=True)
            failure = Failure(one_line(error), is_fatal(error), is_of_memory(error))
        if failure.memory:  # what the error held is gone by now
            self._make_room()
        return failure

    def _make_room(self) -> None:
        if not self._ready:
            self._timing.forget_inputs()
        gc.collect()
        self._torch.cuda.empty_cache()

    def _warm(self, request: Warm) -> Reply:
        from mugraph.tune.subjects import load_module
        from mugraph.tune.warmup import warm_up

        begun = time.perf_counter()
        warm_up(load_module(request.subject, self._folder), request.subject.function, request.inputs)
        return Ok(time.perf_counter() - begun)

    def _agree(self, request: Agree) -> Reply:
        from mugraph.tune.agreeing import agree, on_copies
        from mugraph.tune.subjects import load

        self._set(request.subject)
        generator = self._torch.Generator(device="cuda").manual_seed(1)
        mine, reference = (load(one, self._folder) for one in (request.subject, request.reference))
        jumps, writes = request.reference.jumps, request.reference.writes
        return agree(on_copies(mine, writes), on_copies(reference, writes), request.inputs, generator, jumps=jumps)

    def _digits(self, request: Digits) -> Reply:
        from mugraph.trace.run.tf32 import take
        from mugraph.tune.digits import keeps_digits
        from mugraph.tune.subjects import load

        function = load(request.subject, self._folder)
        generator = self._torch.Generator(device="cuda").manual_seed(1)
        return keeps_digits(function, request.inputs, generator, request.subject.tf32, take)

    def _set(self, subject: Subject) -> None:
        """What is compiled, captured and called from now on takes TF32 where the subject's program does. All that are
        compared with one another are of one program."""
        from mugraph.trace.run.tf32 import take

        take(subject.tf32)

    def _prepare(self, request: Prepare) -> Reply:
        from mugraph.tune import inductor
        from mugraph.tune.subjects import load

        begun = time.perf_counter()
        self._set(request.subject)
        with inductor.assembler() if request.subject.compiler != "none" else contextlib.nullcontext():
            function = load(request.subject, self._folder)
            if request.subject.compiler == REPLAYS:
                self._called[request.subject.name] = self._timing.Replaying(function, request.inputs).call
                return Ok(time.perf_counter() - begun)
            try:
                ready = self._timing.Replayable(function, request.inputs, self._l2, limit_us=request.limit_us)
            except self._timing.TooLong as error:
                return Slow(error.us)
            self._ready[request.subject.name] = ready
        return Ok(time.perf_counter() - begun)

    def _replay(self, request: Replay) -> Reply:
        missing = [name for name in request.names if name not in self._ready]
        if missing:
            return Failure(f"not prepared: {', '.join(missing)}")
        samples: dict[str, list[float]] = {name: [] for name in request.names}
        begun = time.perf_counter()
        for turn in range(request.rounds):
            if turn * _LEAST_PART >= request.rounds and time.perf_counter() - begun > _ROUND_S * request.rounds:
                break
            # Another goes first each time: a warm clock or a cool one must not favour one of them.
            shift = turn % max(len(request.names), 1)
            for name in (*request.names[shift:], *request.names[:shift]):
                samples[name].append(self._ready[name].replay_us())
        return Timed({name: tuple(values) for name, values in samples.items()})

    def _enter(self, request: Enter) -> Reply:
        from mugraph.tune.program import entered
        from mugraph.tune.subjects import load

        begun = time.perf_counter()
        found = entered(request.applied, self._folder, "cuda")
        self._called[request.name] = found.call
        if request.reference is not None:
            self._set(request.reference)
            reference = request.reference
            code = load(reference, self._folder)
            reason = found.differs(code, jumps=reference.jumps, writes=reference.writes)
            if reason is not None:
                return Failure(reason)
        return Ok(time.perf_counter() - begun)

    def _call_each(self, request: CallEach) -> Reply:
        from mugraph.tune import inductor
        from mugraph.tune.rotation import calls_of

        torch, timing = self._torch, self._timing
        missing = [name for name in request.names if name not in self._ready and name not in self._called]
        if missing:
            return Failure(f"not prepared: {', '.join(missing)}")
        calls = {name: self._called.get(name) or self._ready[name].call for name in request.names}
        samples: dict[str, list[float]] = {name: [] for name in request.names}
        count: dict[str, int] = {}
        with torch.no_grad():
            with inductor.assembler():
                for name in request.names:
                    timing.called_us(calls[name], torch.cuda.synchronize, 1)  # compiles and allocates
                    count[name] = calls_of(timing.called_us(calls[name], torch.cuda.synchronize, 2))
                    timing.called_us(calls[name], torch.cuda.synchronize, count[name])
            gc.collect()
            gc.disable()
            try:
                begun = time.perf_counter()
                for turn in range(request.rounds):
                    if turn * _LEAST_PART >= request.rounds and time.perf_counter() - begun > _ROUND_S * request.rounds:
                        break
                    shift = turn % max(len(request.names), 1)
                    for name in (*request.names[shift:], *request.names[:shift]):
                        samples[name].append(timing.called_us(calls[name], torch.cuda.synchronize, count[name]))
            finally:
                gc.enable()
        return Timed({name: tuple(values) for name, values in samples.items()})

    def _drop(self, request: Drop) -> Reply:
        if not request.names:
            self._ready.clear()
            self._called.clear()
            self._timing.forget_inputs()
        for name in request.names:
            self._ready.pop(name, None)
            self._called.pop(name, None)
        self._torch.cuda.empty_cache()
        return Ok()


if __name__ == "__main__":
    sys.exit(main())
