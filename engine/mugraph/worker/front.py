"""The engine's front: one loop that owns all state, hears the server and the runner, and never works itself.

Jobs (find, search) go to the runner, a process that can be killed at any moment (`schedule`); questions about what was
found are answered by two threads (`answers`).
"""

from __future__ import annotations

import logging
import os
import queue
import shutil
import sys
import threading
import time
from concurrent.futures import ThreadPoolExecutor
from copy import copy
from pathlib import Path
from typing import cast

from mugraph.log import note
from mugraph.protocol import messages as m
from mugraph.protocol.codec import Decoder, Unreadable
from mugraph.tune.device import Device, detect, driver_present
from mugraph.worker import answers
from mugraph.worker.documents import Known
from mugraph.worker.output import Output
from mugraph.worker.processes import kill_children
from mugraph.worker.runner_process import COMMAND, Heard, RunnerGone, RunnerProcess
from mugraph.worker.schedule import Schedule

EXIT_S = 1.0
"""Seconds after which the process ends without the loop, should that hang."""
_ERRORS = 20
_log = logging.getLogger("mugraph.worker")


class Closed:
    """Standard input has ended, or a signal asks to end."""


Item = m.ToEngine | Unreadable | Heard | RunnerGone | Closed


class Front:
    def __init__(
        self, source: int, sink: int, runner: tuple[str, ...] = COMMAND, temporary: Path | None = None
    ) -> None:
        """temporary: a folder that is to be removed at the end."""
        self._source = source
        self._temporary = temporary
        self._inbox: queue.SimpleQueue[Item] = queue.SimpleQueue()
        self._output = Output(sink, self.close)
        self._runner = RunnerProcess(self._inbox.put, runner)
        self._schedule = Schedule(self._output.send, self._runner, self._ready, self._note)
        self._answers = ThreadPoolExecutor(2, thread_name_prefix="answers")
        self._began = time.monotonic()
        self._hello: m.Hello | None = None
        self._greeted = False
        self._errors: list[str] = []

    def serve(self) -> None:
        """Until the server says exit, or goes. Does not return: the process ends with everything it has started."""
        threading.Thread(target=self._read, name="input", daemon=True).start()
        while True:
            kill_at = self._schedule.kill_at
            try:
                item = self._inbox.get(timeout=None if kill_at is None else max(0.0, kill_at - time.monotonic()))
            except queue.Empty:  # nothing came before a job has to be ended
                self._schedule.time_out()
                continue
            try:
                self._handle(item)
            except Exception as error:  # the loop must go on for all other documents
                self._note(f"an internal error ({type(error).__name__}); details are in {note(error, 'the engine')}")
                self._fail(item, self._errors[-1])

    def close(self) -> None:
        """From a signal handler or a thread: end soon."""
        self._inbox.put(Closed())

    def _read(self) -> None:
        decoder: Decoder[m.ToEngine] = Decoder(cast(type[m.ToEngine], m.ToEngine))
        while True:
            try:
                data = os.read(self._source, 65536)
            except OSError as error:  # the server has gone: as if it had closed its end
                _log.debug("the server cannot be heard: %s", error)
                break
            if not data:
                break
            for message in decoder.feed(data):
                self._inbox.put(message)
        self.close()
        time.sleep(EXIT_S)  # the loop ends the process before that
        self._end(0)

    def _end(self, status: int) -> None:
        deadline = threading.Timer(EXIT_S, self._leave, (status,))
        deadline.daemon = True
        deadline.start()
        self._runner.kill()
        kill_children()
        self._leave(status)

    def _leave(self, status: int) -> None:
        if self._temporary is not None:
            shutil.rmtree(self._temporary, ignore_errors=True)
        os._exit(status)

    def _handle(self, item: Item) -> None:
        schedule = self._schedule
        match item:
            case Closed() | m.Exit():
                self._end(0)
            case Unreadable():
                self._output.send(m.Failed(item.id, item.sentence))
            case Heard():
                if item.generation == self._runner.generation:
                    schedule.heard(item.word)
            case RunnerGone():
                if item.generation == self._runner.generation:
                    schedule.gone(item.status)
            case m.Hello():
                self._greet(item)
            case m.Ping():
                self._output.send(m.Pong(item.id))
            case _ if self._hello is None:
                self._fail(item, "the first message has to be hello")
            case m.Configure():
                if (wrong := answers.wrong_setting(item.settings)) is not None:
                    self._fail(item, wrong)
                else:
                    schedule.settings = item.settings
                    self._output.send(m.Configured(item.id, item.settings))
            case m.Find() | m.Search():
                schedule.ask(item)
            case m.Prioritise():
                schedule.prioritise(item.uri, item.priority)
            case m.Cancel():
                schedule.cancel(item.id)
            case m.CancelDocument():
                schedule.cancel_document(item.uri)
            case m.Close():
                schedule.close(item.uri)
            case _:
                self._ask(item)

    # ------------------------------------------------------------------ beginnings

    def _greet(self, hello: m.Hello) -> None:
        if self._hello is not None:
            self._fail(hello, "hello has been said already")
            return
        if hello.protocol != m.PROTOCOL:
            self._fail(
                hello,
                f"the engine speaks protocol {m.PROTOCOL}, the server {hello.protocol}; install the server's version "
                f"of mugraph in {sys.executable}",
            )
            self._output.flush()
            self._end(1)
        self._hello = hello
        if hello.root is not None:
            try:
                os.chdir(hello.root)
            except OSError as error:
                self._output.send(m.Notice(f"the folder {hello.root} cannot be entered: {error.strerror or error}"))
        if (wrong := answers.wrong_setting(hello.settings)) is not None:
            self._output.send(m.Notice(wrong))
        else:
            self._schedule.settings = hello.settings
        self._schedule.problem = answers.missing()
        if self._schedule.problem is not None:
            self._ready(None, self._schedule.problem)
            return
        self._schedule.start()
        if not driver_present():  # else only torch can say which GPU it is, and the runner has to import it first
            self._ready(detect(), None)

    def _ready(self, device: Device | None, problem: str | None) -> None:
        """The runner can work, or cannot. That it can is news only once."""
        if self._hello is None:
            return
        if self._greeted:
            if problem is not None:
                self._output.send(m.Notice(problem))
            return
        self._greeted = True
        self._output.send(
            m.Ready(
                self._hello.id,
                answers.all_versions(),
                sys.executable,
                os.getpid(),
                answers.device_value(device or answers.NOTHING),
                problems=[problem] if problem else [],
            )
        )

    # ------------------------------------------------------------------ questions

    def _ask(self, question: answers.Question) -> None:
        document = getattr(question, "document", None)
        uri = question.uri if isinstance(question, m.Draw) else document.uri if document is not None else None
        known = self._schedule.documents.get(uri) if uri is not None else None
        if known is not None:  # as it is now: the loop goes on changing it
            known = copy(known)
            known.results = dict(known.results)
        schedule = self._schedule
        engine = answers.Engine(
            schedule.device,
            schedule.settings,
            tuple(schedule.open_jobs()),
            tuple(self._errors),
            time.monotonic() - self._began,
            schedule.restarts,
        )
        self._answers.submit(self._answer, question, known, engine)

    def _answer(self, question: answers.Question, known: Known | None, engine: answers.Engine) -> None:
        try:
            self._output.send(answers.answer(question, known, engine))
        except answers.NoAnswer as error:
            self._fail(question, str(error))
        except Exception as error:  # said as a sentence, whatever it is
            sentence = f"an internal error ({type(error).__name__}); details are in {note(error, 'a question')}"
            self._note(sentence)
            self._fail(question, sentence)

    def _fail(self, item: object, sentence: str) -> None:
        """Answers a request; what is none gets no answer."""
        id = getattr(item, "id", None)
        if isinstance(id, int) and not isinstance(item, m.Cancel):
            self._output.send(m.Failed(id, sentence))

    def _note(self, error: str) -> None:
        _log.error(error)
        self._errors = [*self._errors, error][-_ERRORS:]
