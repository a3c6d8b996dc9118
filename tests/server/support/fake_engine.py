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

import hashlib
import json
import os
import queue
import re
import signal
import subprocess
import sys
import threading
import time
from pathlib import Path
from typing import Any, cast

import msgspec
from mugraph.protocol import Decoder, Unreadable, encode
from mugraph.protocol import messages as m
from mugraph.protocol import values as v

CONTROL = Path(sys.argv[1])
_REGION = re.compile(r"^(\s*return )(.+?)\s*$")
_DEF = re.compile(r"^(\s*)def (\w+)")
_OURS = re.compile(r"^\s*# mugraph:")
_CALL = re.compile(r"_mugraph\.\w+_fits\(\) or (.+)$")


def control() -> dict[str, Any]:
    return json.loads(CONTROL.read_text())


def note(kind: str, text: str) -> None:
    with CONTROL.with_name(f"{CONTROL.name}.{kind}").open("a") as file:
        file.write(text + "\n")


class Engine:
    def __init__(self) -> None:
        self.inbox: queue.Queue[Any] = queue.Queue()
        self.cancelled: set[int] = set()
        self.closed: set[str] = set()
        self.lock = threading.Lock()
        self.known: dict[str, list[v.Region]] = {}
        self.settings = v.Settings()

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
                self.edit(message)
            case m.PrepareRevert():
                self.revert(message)
            case m.InsertShapes():
                self.shapes(message)
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

    def edit(self, message: Any) -> None:
        document, text = message.document, message.document.text
        regions = regions_of(text, document.uri)
        chosen = [r for r in regions if message.keys is None or r.key in message.keys]
        if not self.known.get(document.uri) or not chosen:
            self.send(m.Failed(message.id, "there is no verified kernel for this code; search again"))
            return
        path = Path(document.path)
        module = path.with_name(f"{path.stem}_mugraph.py")
        first = v.Position(0, 0)
        edits = [v.TextEdit(v.Range(first, first), f"import {module.stem} as _mugraph\n")]
        lines = text.split("\n")
        for region in chosen:
            number = region.range.start.line
            found = _REGION.match(lines[number])
            assert found is not None
            new = f"{found[1]}_mugraph.{region.function}_fits() or {found[2]}\n"
            edits.append(v.TextEdit(v.Range(v.Position(number, 0), v.Position(number + 1, 0)), new))
        create = {str(module): f'"""GPU kernels for {path.name} written by mugraph."""\n'}
        if isinstance(message, m.Preview):
            preview = (str(module), create[str(module)], text, "after")
            self.send(m.KernelPreview(message.id, document.uri, document.version, *preview))
            return
        label = "Replace with generated Triton kernel"
        self.send(m.Edit(message.id, document.uri, document.version, edits, label, create))

    def revert(self, message: Any) -> None:
        document = message.document
        edits: list[v.TextEdit] = []
        lines = document.text.split("\n")
        for number, line in enumerate(lines):
            place = v.Range(v.Position(number, 0), v.Position(number + 1, 0))
            if line.startswith("import ") and line.endswith(" as _mugraph"):
                edits.append(v.TextEdit(place, ""))
            elif found := _CALL.search(line):
                edits.append(v.TextEdit(place, line[: found.start()] + found[1] + "\n"))
        if not edits:
            self.send(m.Failed(message.id, "There is nothing to undo."))
            return
        path = Path(document.path)
        module = str(path.with_name(f"{path.stem}_mugraph.py"))
        self.send(m.Edit(message.id, document.uri, document.version, edits, "Revert to PyTorch", delete=[module]))

    def shapes(self, message: Any) -> None:
        document = message.document
        given = ", ".join(f"{k}={s}" for k, s in (message.arguments or {"x": "f16[?, ?]"}).items())
        for number, line in enumerate(document.text.split("\n")):
            found = _DEF.match(line)
            if found and found[2] == message.function:
                at = v.Position(number, 0)
                edit = v.TextEdit(v.Range(at, at), f"{found[1]}# mugraph: {given}\n")
                self.send(m.Edit(message.id, document.uri, document.version, [edit], "Insert shapes"))
                return
        self.send(m.Failed(message.id, "there is no such function"))

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


RANGED = v.Timing(
    "measured", "Fake H200", "CUDA events", 16.4, 9.1, 1.8, {"eager": 20.0, "torch.compile": 16.4}, "b = 16",
    "b up to 16", [
        v.SizeTiming(1, 15.0, 5.0, 3.0, {"eager": 18.0, "torch.compile": 15.0}),
        v.SizeTiming(16, 16.4, 9.1, 1.8, {"eager": 20.0, "torch.compile": 16.4}),
        v.SizeTiming(64, 20.0, 22.0, 0.91, {"eager": 24.0, "torch.compile": 20.0}),
    ],
)  # fmt: skip
"""Of a region whose line says `ranged`."""


def regions_of(text: str, uri: str) -> list[v.Region]:
    """One for each `return EXPRESSION`; shapes are known where a `# mugraph:` comment stands above the function."""
    found: list[v.Region] = []
    head, function, shaped = v.Range(v.Position(0, 0), v.Position(0, 0)), "", False
    lines = text.split("\n")
    for number, line in enumerate(lines):
        if match := _DEF.match(line):
            start = len(match[1])
            head = v.Range(v.Position(number, start), v.Position(number, units(match[0])))
            function, shaped = match[2], number > 0 and _OURS.match(lines[number - 1]) is not None
        elif (match := _REGION.match(line)) and function:
            place = v.Range(v.Position(number, units(match[1])), v.Position(number, units(match[1] + match[2])))
            key = hashlib.sha256(f"{function} {match[2]}".encode()).hexdigest()[:16]
            if not shaped:
                found.append(v.Region(key, function, head, head, "needs-shapes", f"{function} needs shapes"))
                continue
            if "_mugraph." in line:
                found.append(v.Region(key, function, place, head, "applied", f"{function} runs as a kernel"))
                continue
            if "slow" in line:
                found.append(v.Region(key, function, place, head, "no-gain", f"{function}: PyTorch's own is as good"))
                continue
            timing = RANGED if "ranged" in line else v.Timing("measured", "Fake H200", "CUDA events", 16.4, 9.1, 1.8)
            found.append(
                v.Region(
                    key, function, place, head, "improved", f"{function}: 1.8 times faster", [place], verified=True,
                    lax=True, applicable=True, evidence=["equal over two finite fields"], timing=timing,
                    kernels=["k"], block_ops=3, id=key[:10], candidates=[
                        v.Candidate("k", 0, 0.1, "grid n/64: 96 blocks; 4 warps, 3 stages", 3, 12.5),
                        v.Candidate("k", 1, 0.4, "grid n/128: 48 blocks; 4 warps, 3 stages", 3, 8.5, 9.1, chosen=True),
                    ],
                )
            )  # fmt: skip
    return found


def units(text: str) -> int:
    return len(text.encode("utf-16-le")) // 2


def waiting(region: v.Region, status: v.RegionStatus) -> v.Region:
    if region.status != "improved":
        return region
    return v.Region(region.key, region.function, region.range, region.name_range, status, status, region.statements)


def in_store(region: v.Region) -> bool:
    path = CONTROL.with_name(f"{CONTROL.name}.store")
    return path.exists() and region.key in path.read_text()


def keep(region: v.Region) -> None:
    note("store", region.key)


def misbehave(told: dict[str, Any], moment: str) -> None:
    what = told.get(moment)
    if not what:
        return
    if told.get("once"):
        done = CONTROL.with_name(f"{CONTROL.name}.done")
        if done.exists():
            return
        done.write_text("")
    match what:
        case "crash":
            print("Traceback: a crash that was asked for", file=sys.stderr, flush=True)
            os._exit(3)
        case "oom":
            os.kill(os.getpid(), signal.SIGKILL)
        case "cuda":
            print("torch.AcceleratorError: CUDA error: an illegal memory access", file=sys.stderr, flush=True)
            os.abort()
        case "hang":
            note("log", "hanging")
            os.kill(os.getpid(), signal.SIGSTOP)
            time.sleep(10_000)  # this thread may run on until another has taken the signal
        case "silent":
            time.sleep(10_000)
        case "bad-json":
            os.write(1, b'{"type":"finished","id":' + b"x" * 50 + b"}\n")
        case "print":
            os.write(1, "a stray print, without an end: naïve".encode())
        case "garbage":
            os.write(1, os.urandom(4096) + b"\n")
        case "stderr":
            os.write(2, b"x" * 1_000_000)
        case _:
            raise ValueError(what)


def start_children(told: dict[str, Any]) -> None:
    for kind in told.get("children", []):
        child = subprocess.Popen(
            [sys.executable, "-c", "import time; time.sleep(600)"],
            start_new_session=kind == "own",
            stdin=subprocess.DEVNULL,
        )
        note("pids", str(child.pid))


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
