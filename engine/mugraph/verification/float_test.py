"""Emitted kernels against float64, in a process of its own that can be killed."""

from __future__ import annotations

import base64
import json
import os
import pickle
import selectors
import signal
import subprocess
import sys
from collections.abc import Generator, Mapping, Sequence
from contextlib import contextmanager, nullcontext, suppress
from math import inf
from pathlib import Path
from time import monotonic
from types import TracebackType
from typing import Any, Literal, Protocol, Self, cast

from mugraph.child_log import pass_on
from mugraph.giving_up import LOOK_S, WORDS, GivingUp
from mugraph.ir.program import TensorProgram
from mugraph.ir.region import SearchUnit
from mugraph.ir.tensors import Tensor
from mugraph.one_thread import with_one_thread
from mugraph.scratch import Scratch, inside, scratch
from mugraph.sharing import turn
from mugraph.stopwatch import Stopwatch
from mugraph.verification.float_results import FloatResult, LoweringResult, result_of

Device = Literal["interpreter", "cuda"]

_ENDS_S = 1.0
"""That a child may take to end, once it has closed its output."""
_START_S = 120.0
"""What the first answer of a fresh process may take beyond the time-out: importing torch and Triton."""
_RELEASE_S = 60.0
LATE = "there was no time left for it"
"""Why there is no answer to what was asked within `until`, once that is over."""
_DIED = "the process running {} died"
_SAID = "stderr"
"""A file in the child's temporary folder."""


class Kernel(Protocol):
    """What is asked of a generated kernel (ir.kernel.KernelSource is one; imports point from codegen to here)."""

    @property
    def name(self) -> str: ...
    @property
    def inputs(self) -> tuple[Tensor, ...]: ...
    @property
    def outputs(self) -> tuple[Tensor, ...]: ...
    def standalone(self) -> str:
        """A complete module with a function launch_<name>(<inputs>) that returns the outputs."""
        ...


class FloatTester:
    """Tests any number of kernels in one child process, started at the first and again after a crash or a time-out.

    device:    "interpreter" runs on CPU tensors with TRITON_INTERPRET=1; "cuda" on the current GPU
    timeout_s: for one kernel, all scenarios together
    giving_up: while it is on, tests fail. A child that works on one is killed; one that still starts goes on
    Use as a context manager; leaving it ends the child.
    """

    def __init__(
        self, device: Device = "interpreter", timeout_s: float = 60.0, giving_up: GivingUp | None = None
    ) -> None:
        self.device: Device = device
        self.timeout_s = timeout_s
        self._giving_up = giving_up
        self._child: subprocess.Popen[bytes] | None = None
        self._scratch: Scratch | None = None
        self._heard = 0
        self._fresh = True
        self._owes = False
        self._number = 0
        self._until = inf
        self.spent = Stopwatch()
        """Where the seconds count that it waits for the device."""

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self.close()

    def begin(self) -> None:
        """Start the child, if there is none, without waiting for it: it imports PyTorch for seconds."""
        if self._child is None:
            self._start()

    @contextmanager
    def until(self, left_s: float) -> Generator[None]:
        """What is asked inside is answered within so many seconds, or given up."""
        before, self._until = self._until, min(self._until, monotonic() + left_s)
        try:
            yield
        finally:
            self._until = before

    @property
    def pid(self) -> int | None:
        """Of the child, while it runs."""
        return self._child.pid if self._child is not None and self._child.poll() is None else None

    def release(self) -> None:
        """The memory of the device that the child keeps for the next kernel."""
        if self.pid is not None and not self._fresh:  # a fresh one has none
            self._number += 1
            self._ask(json.dumps({"number": self._number}).encode() + b"\n", _RELEASE_S, "the release of its memory")

    def close(self) -> None:
        """End the child and everything it started."""
        if self._child is None:
            return
        self._owes = False
        with suppress(ProcessLookupError):  # it may have ended by itself
            os.killpg(self._child.pid, signal.SIGKILL)
        self._child.wait()
        for stream in (self._child.stdin, self._child.stdout):
            if stream is not None:
                stream.close()
        self._child = None
        if self._scratch is not None:
            self._said()
            self._scratch.cleanup()

    def test_kernel(self, kernel: Kernel, program: TensorProgram, seed: int = 0) -> FloatResult:
        """One generated kernel that computes all of the program, both at the same sizes."""
        inputs = [tensor.name for tensor in kernel.inputs]
        outputs = [tensor.name for tensor in kernel.outputs]
        return self.test(kernel.standalone(), f"launch_{kernel.name}", program, inputs, outputs, seed)

    def test(
        self,
        module: str,
        launcher: str,
        program: TensorProgram,
        inputs: Sequence[str],
        outputs: Sequence[str],
        seed: int = 0,
        shapes: Mapping[str, tuple[Sequence[int], Sequence[int]]] | None = None,
    ) -> FloatResult:
        """A Python module whose function `launcher` takes the program's tensors named in `inputs` (in this order) and
        returns those named in `outputs`. Never raises for what the module does. shapes: tensor -> shape and strides,
        where the launcher gets and returns others than the program's"""
        self._number += 1
        request: dict[str, Any] = {
            "number": self._number,
            "scenario": 0,
            "module": module,
            "launcher": launcher,
            "program": base64.b64encode(pickle.dumps(program)).decode(),
            "inputs": list(inputs),
            "outputs": list(outputs),
            "seed": seed,
            "shapes": dict(shapes or {}),
        }
        left_s, position, results = self.timeout_s, 0, list[dict[str, Any]]()
        while True:
            # In turns of a scenario: others on the device do not wait for all of them.
            with turn(alone=False, spent=self.spent) if self.device == "cuda" else nullcontext():
                answer = self._ask(json.dumps(request).encode() + b"\n", left_s, of_s=self.timeout_s)
            if isinstance(answer, str):
                return FloatResult(False, answer)
            left_s -= answer["seconds"]
            results += answer["results"]
            if not answer["left"]:
                return result_of({**answer, "results": results})
            if self.pid is None:
                return FloatResult(False, _DIED.format("the kernel"))
            position += 1
            request = {"number": self._number, "scenario": position}

    def test_lowering(self, unit: SearchUnit, seed: int = 0, timeout_s: float = 20.0) -> LoweringResult:
        """The recorded calls of a search unit, run by PyTorch, beside its tensor program. Never raises for what they
        do."""
        self._number += 1
        asked = {"number": self._number, "unit": base64.b64encode(pickle.dumps(unit)).decode(), "seed": seed}
        answer = self._ask(json.dumps(asked).encode() + b"\n", timeout_s, "PyTorch's calls")
        if isinstance(answer, str):
            return LoweringResult(None, answer)
        if answer["error"] is not None:
            return LoweringResult(None, f"the check failed: {answer['error']}")
        return LoweringResult(**answer["results"][0])

    def _ask(
        self, request: bytes, timeout_s: float, what: str = "the kernel", of_s: float | None = None
    ) -> dict[str, Any] | str:
        """The child's answer, or one sentence saying why there is none. of_s: what timeout_s is the rest of"""
        if self._given_up or (self._owes and not self._settled()):
            return WORDS
        if monotonic() >= self._until:
            return LATE
        if self._child is None or self._child.poll() is not None:
            self.close()
            self._start()
        child = self._child
        assert child is not None
        assert child.stdin is not None
        assert child.stdout is not None
        deadline = min(self._until, monotonic() + timeout_s + (_START_S if self._fresh else 0.0))
        try:
            child.stdin.write(request)
            child.stdin.flush()
            line = _read_line(child.stdout.fileno(), deadline, self._giving_up)
        except (BrokenPipeError, ConnectionError):  # it has died, which is said below
            line = b""
        if line is None and self._given_up:
            if self._fresh:  # it goes on starting
                self._owes = True
            else:
                self.close()
            return WORDS
        if line is None:
            self.close()
            return LATE if monotonic() >= self._until else f"{what} did not finish in {of_s or timeout_s:g} s"
        if not line.endswith(b"\n"):
            last = self._last_words() or _how_it_ended(child)
            self.close()
            return f"{_DIED.format(what)}{f': {last}' if last else ''}"
        self._fresh = False
        answer = cast("dict[str, Any]", json.loads(line))
        if answer["broken"]:
            self.close()
        return answer

    @property
    def _given_up(self) -> bool:
        return self._giving_up is not None and self._giving_up.on

    def _settled(self) -> bool:
        """Waits for the answer to what was given up while the child was starting: nobody wants it. False where this
        was given up as well."""
        assert self._child is not None
        assert self._child.stdout is not None
        line = _read_line(self._child.stdout.fileno(), monotonic() + self.timeout_s + _START_S, self._giving_up)
        if line is None and self._given_up:
            return False
        self._owes = False
        if line is None or not line.endswith(b"\n") or json.loads(line)["broken"]:
            self.close()
        return True

    def _start(self) -> None:
        environment = dict(os.environ)
        environment.pop("TRITON_INTERPRET", None)
        if self.device == "interpreter":
            environment["TRITON_INTERPRET"] = "1"
        self._scratch, self._heard = scratch("float"), 0
        with open(Path(self._scratch.name, _SAID), "ab") as stderr:
            self._child = subprocess.Popen(
                [sys.executable, "-P", "-m", "mugraph.verification.float_child", self.device],
                stdin=subprocess.PIPE,
                stdout=subprocess.PIPE,
                stderr=stderr,
                env=inside(self._scratch, with_one_thread(environment)),
                start_new_session=True,  # so that close() ends its children with it
            )
        self._fresh = True

    def _last_words(self) -> str:
        """The last line of the child's standard error: mostly the error that it died of."""
        lines = [line.strip() for line in self._said() if line.strip()]
        return lines[-1][:300] if lines else ""

    def _said(self) -> list[str]:
        """The child's standard error since this was last asked, without what it logged, which is logged here."""
        assert self._scratch is not None
        try:
            with open(Path(self._scratch.name, _SAID), errors="replace") as file:
                file.seek(self._heard)
                text = file.read()
                self._heard = file.tell()
        except FileNotFoundError:  # this process ends, and its temporary folders went first
            return []
        return pass_on(text.split("\n"))


def float_test(
    kernel: Kernel, program: TensorProgram, device: Device = "interpreter", timeout_s: float = 60.0, seed: int = 0
) -> FloatResult:
    """Test one kernel in a process of its own. For several, FloatTester saves the imports."""
    with FloatTester(device, timeout_s) as tester:
        return tester.test_kernel(kernel, program, seed)


def _how_it_ended(child: subprocess.Popen[bytes]) -> str:
    """By which signal; nothing where it ended by itself."""
    try:
        status = child.wait(_ENDS_S)
    except subprocess.TimeoutExpired:
        return ""
    return f"signal {-status}" if status < 0 else ""


def _read_line(descriptor: int, deadline: float, giving_up: GivingUp | None) -> bytes | None:
    """Bytes up to a newline, or to the end of the stream; None when the deadline passes first, or they are given
    up."""
    line = bytearray()
    with selectors.DefaultSelector() as selector:
        selector.register(descriptor, selectors.EVENT_READ)
        while not line.endswith(b"\n"):
            if not line and giving_up is not None and giving_up.on:
                return None
            left = max(0.0, deadline - monotonic())
            if not selector.select(left if giving_up is None else min(left, LOOK_S)):
                if monotonic() < deadline:
                    continue
                return None
            chunk = os.read(descriptor, 65536)
            if not chunk:
                break
            line += chunk
    return bytes(line)
