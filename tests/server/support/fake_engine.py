"""An engine for tests: speaks mugraph.protocol, finds a region at every `return`, and misbehaves as it is told.

    python fake_engine.py CONTROL.json

CONTROL.json is read again for every message:

    search_s      how long a search takes for each region        on_hello, on_search, on_edit   what goes wrong then:
    steps_s       time between two progress messages             "crash", "oom", "cuda", "hang", "bad-json", "print",
    problems      as Ready has them                              "stderr", "garbage", "silent"
    store         false: every search works anew                 once   true: only the first engine misbehaves
    children      processes to start, and how ("group", "own")   checks, recordings   answers to give
    ignore_exit   neither Exit nor the end of input ends it      draw_s    how long a drawing takes
    tune_s        time between its last candidate and that one's time

What it hears is appended to CONTROL.json.log, one type a line; pids of what it starts go to CONTROL.json.pids.
"""

from __future__ import annotations

import os
import queue
import signal
import sys
import threading
import time
from typing import Any, cast

import msgspec
from fake_control import control, misbehave, note, start_children
from fake_edits import edit, revert, shapes
from fake_regions import in_store, keep, regions_of, waiting
from mugraph.protocol import Decoder, Unreadable, encode
from mugraph.protocol import messages as m
from mugraph.protocol import values as v
from mugraph.protocol.settings import EngineSettings


class Engine:
    def __init__(self) -> None:
        self.inbox: queue.Queue[Any] = queue.Queue()
        self.cancelled: set[int] = set()
        self.closed: set[str] = set()
        self.lock = threading.Lock()
        self.known: dict[str, list[v.Region]] = {}
        self.settings = EngineSettings()

    def send(self, message: Any) -> None:
        with self.lock:
            os.write(1, encode(message))

    def read(self) -> None:
        decoder: Any = Decoder(cast(Any, m.ToEngine))
        while data := os.read(0, 65536):
            for message in decoder.feed(data):
                self.hear(message)
        if not control().get("ignore_exit"):
            os._exit(0)

    def hear(self, message: Any) -> None:
        """At once, whatever runs."""
        if isinstance(message, Unreadable):
            self.send(m.Failed(message.id, message.sentence))
            return
        note("log", type(message).__name__)
        if isinstance(message, m.Exit):
            if not control().get("ignore_exit"):
                os._exit(0)
        elif isinstance(message, m.Cancel):
            self.cancelled.add(message.id)
        elif isinstance(message, m.CancelDocument | m.Close):
            self.closed.add(message.uri)
            if isinstance(message, m.Close):
                self.known.pop(message.uri, None)
        elif isinstance(message, m.Ping):
            if control().get("on_ping") != "silent":
                self.send(m.Pong(message.id))
        elif isinstance(message, m.Search | m.Find):
            self.closed.discard(message.document.uri)
            self.inbox.put(message)
        else:
            threading.Thread(target=self.answer, args=(message,), daemon=True).start()

    # --- answers ----------------------------------------------------------------------------------------------------

    def answer(self, message: Any) -> None:
        told = control()
        match message:
            case m.Hello():
                self.settings = message.settings
                misbehave(told, "on_hello")
                start_children(told)
                versions = {"mugraph": "0", "torch": "none", "triton": "none", "python": "3"}
                device = v.Device("Fake H200", "gpu", "sm_90")
                problems = told.get("problems", [])
                self.send(m.Ready(message.id, versions, sys.executable, os.getpid(), device, problems=problems))
            case m.Configure():
                self.settings = message.settings
                self.send(m.Configured(message.id, message.settings))
            case m.PrepareEdit() | m.Preview():
                misbehave(told, "on_edit")
                time.sleep(told.get("edit_s", 0))
                self.send(edit(message, bool(self.known.get(message.document.uri))))
            case m.PrepareRevert():
                self.send(revert(message))
            case m.InsertShapes():
                self.send(shapes(message))
            case m.Draw():
                time.sleep(told.get("draw_s", 0))
                known = self.known.get(message.uri, [])
                if not any(region.key == message.key for region in known):
                    self.send(m.Failed(message.id, "there is no μGraph for this code"))
                    return
                svg = f'<svg xmlns="http://www.w3.org/2000/svg" width="680" height="270"><!-- {message.theme} --></svg>'
                text = "kernel graph\n  block graph: grid 16\n" if message.form == "text" else svg
                self.send(m.Drawing(message.id, message.uri, message.key, message.form, text))
            case m.CheckKernels():
                document = message.document
                checks = [msgspec.convert(check, v.KernelCheck) for check in told.get("checks", [])]
                self.send(m.KernelChecks(message.id, document.uri, document.version, checks))
            case m.AskRecordings():
                found = [msgspec.convert(one, v.Recording) for one in told.get("recordings", [])]
                self.send(m.Recordings(message.id, message.document.uri, found))
            case m.AskReport():
                device = v.Device("Fake H200", "gpu", "sm_90")
                self.send(m.Report(message.id, [], {}, device, self.settings, "", [], [], 1.0, 0))
            case _:
                return

    # --- jobs -------------------------------------------------------------------------------------------------------

    def work(self) -> None:
        while True:
            message = self.inbox.get()
            document = message.document
            regions = regions_of(document.text or "", document.uri)
            about = (message.id, document.uri, document.version)
            if isinstance(message, m.Find):
                self.send(m.Found(*about, regions=[waiting(region, "queued") for region in regions]))
                continue
            self.search(message, regions, about, control())

    def search(self, message: Any, regions: list[v.Region], about: tuple[int, str, int], told: dict[str, Any]) -> None:
        time.sleep(told.get("trace_s", 0))
        misbehave(told, "on_search")
        searched = [r for r in regions if r.status == "improved" and (message.keys is None or r.key in message.keys)]
        if not message.again and told.get("store", True):
            searched = [r for r in searched if not in_store(r)]
        busy = {region.key for region in searched}
        states = [waiting(region, "queued") if region.key in busy else region for region in regions]
        self.known[about[1]] = [region for region in states if region.status == "improved"]
        self.send(m.Found(*about, regions=states, errors=told.get("errors", [])))
        for number, region in enumerate(searched):
            note("log", f"searching {region.function}")
            self.send(m.RegionChanged(*about, waiting(region, "searching"), number, len(searched)))
            end = time.monotonic() + told.get("search_s", 0)
            step = 0
            while time.monotonic() < end:
                time.sleep(told.get("steps_s", 0.02))
                step += 1
                words = f"searching {region.function}"
                self.send(m.Progress(*about, region.key, words, number, len(searched), step, step * 0.02))
                if message.id in self.cancelled or about[1] in self.closed:
                    self.send(m.Finished(*about, "cancelled"))
                    return
            if told.get("search_s"):
                self.send(m.FirstHit(*about, region.key, 0.1, 3))
                first, second = region.candidates
                self.send(m.BetterHit(*about, region.key, first))
                self.send(m.BetterHit(*about, region.key, msgspec.structs.replace(second, measured_us=None)))
                time.sleep(told.get("tune_s", 0))
                self.send(m.AnotherHit(*about, region.key, second))
            keep(region)
            self.known[about[1]].append(region)
            self.send(m.RegionChanged(*about, region, number, len(searched)))
        self.send(m.Finished(*about, "done"))


def main() -> None:
    note("pids", str(os.getpid()))
    if control().get("ignore_exit"):
        signal.signal(signal.SIGTERM, signal.SIG_IGN)
    engine = Engine()
    threading.Thread(target=engine.work, daemon=True).start()
    engine.read()
    time.sleep(10_000)  # only where the end of input is not to end it


if __name__ == "__main__":
    main()
