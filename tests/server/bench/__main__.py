"""`make bench-server`: what a person feels of the server, with an engine that is busy all the time."""

from __future__ import annotations

import os
import sys
import tempfile
import time
from collections.abc import Callable
from pathlib import Path

import psutil

from tests.server.conftest import Control
from tests.server.support.editor import Editor
from tests.server.support.texts import IMPROVED

_HOVERS, _CHANGES, _SAVES = 2_000, 20_000, 100


def main() -> None:
    print(f"{os.cpu_count()} cores, load {os.getloadavg()[0]:.1f}, Python {sys.version.split()[0]}")
    for measure in (start_up, hover, hover_real, on_save, cancel_real, large_file, memory, save_storm, idle):
        with tempfile.TemporaryDirectory() as folder:
            measure(_Place(Path(folder)))


class _Place:
    def __init__(self, folder: Path) -> None:
        self.root = folder / "workspace"
        self.root.mkdir()
        (folder / "control").mkdir()
        self.control = Control(folder / "control")
        self.cache = folder / "cache"

    def editor(self, real: bool = False, **settings: object) -> Editor:
        engine = {} if real else {"engine": {"command": self.control.command}}
        return Editor(self.root, settings={**engine, **settings}, env={"MUGRAPH_CACHE_DIR": str(self.cache)})

    def improved(self, client: Editor, name: str = "model.py", text: str = IMPROVED) -> str:
        uri = client.open(self.root / name, text)
        client.wait_codes(uri, "improved")
        return uri


def start_up(place: _Place) -> None:
    times: list[float] = []
    for _ in range(5):
        client = place.editor()
        times.append(client.ready_s)
        client.quit()
    times.sort()
    say("start-up, process to answered initialize", f"median {1e3 * times[2]:.0f} ms, worst {1e3 * times[-1]:.0f} ms")


def hover(place: _Place) -> None:
    """While progress comes in a hundred times a second."""
    place.control.tell(search_s=3_600, steps_s=0.01)
    client = place.editor()
    place.control.tell()
    uri = place.improved(client)
    place.control.tell(search_s=3_600, steps_s=0.01)
    client.open(place.root / "busy.py", IMPROVED.replace("def f", "def busy"))
    client.until(lambda: client.status().get("state") == "searching")
    say("hover during a search", spread(lambda: client.hover(uri, 5, 14), _HOVERS))
    client.quit()


def hover_real(place: _Place) -> None:
    """The engine searches a whole transformer block beside it, on the same cores."""
    samples = Path(__file__).parents[3] / "samples"
    client = place.editor(real=True, search={"budget": 1})
    uri = client.open(place.root / "model.py", (samples / "rmsnorm_linear.py").read_text())
    client.until(lambda: "improved" in client.codes(uri), 120)
    found = (client.diagnostics(uri) or [])[0]["range"]["start"]
    client.settings = {"search": {"budget": 600}}
    client.notify("workspace/didChangeConfiguration", {"settings": {"mugraph": client.settings}})
    client.open(place.root / "busy.py", (samples / "llama_block.py").read_text())
    client.until(lambda: client.status().get("regions", {}).get("searching"), 120)
    say(
        "hover during a search of the real engine",
        spread(lambda: client.hover(uri, found["line"], found["character"]), _HOVERS),
    )
    client.quit()


def on_save(place: _Place) -> None:
    """What a client asks before it writes a file, where its user wants the fixes of other servers."""
    client = place.editor()
    uri = place.improved(client)
    say("code actions on save", spread(lambda: client.actions(uri, 5, ["source.fixAll"]), _HOVERS))
    client.quit()


def cancel_real(place: _Place) -> None:
    """From the command to the server's word that nothing is searched any more."""
    sample = Path(__file__).parents[3] / "samples" / "llama_block.py"
    client = place.editor(real=True, search={"budget": 600})
    uri = client.open(place.root / "model.py", sample.read_text())
    times: list[float] = []
    for _ in range(5):
        client.until(lambda: client.status().get("regions", {}).get("searching"), 120)
        time.sleep(0.5)
        began = time.perf_counter()
        client.command("mugraph.cancel", uri)
        client.until(lambda: client.status().get("searching") == 0)
        times.append(time.perf_counter() - began)
        client.command("mugraph.searchAgain", uri)
    times.sort()
    say("cancelled in the middle of a search", f"median {1e3 * times[2]:.0f} ms, worst {1e3 * times[-1]:.0f} ms")
    client.quit()


def large_file(place: _Place) -> None:
    text = IMPROVED + "\n".join(f"value_{n} = {n}" for n in range(100_000))
    client = place.editor()
    times: list[float] = []
    for number in range(5):
        began = time.perf_counter()
        uri = client.open(place.root / f"large_{number}.py", text)
        client.lenses(uri)
        times.append(time.perf_counter() - began)
        client.wait_codes(uri, "improved", timeout=60)
        client.close_document(uri)
    times.sort()
    say("open of 100,000 lines, to answered lens", f"median {1e3 * times[2]:.0f} ms, worst {1e3 * times[-1]:.0f} ms")
    client.quit()


def memory(place: _Place) -> None:
    client = place.editor()
    uri = place.improved(client)
    server = psutil.Process(client.process.pid)
    for _ in range(1_000):  # what is allocated once is there then
        client.change(uri, (1, 0), (1, 0), "\n")
        client.change(uri, (1, 0), (2, 0), "")
    client.lenses(uri)
    before = server.memory_info().rss
    began = time.perf_counter()
    for _ in range(_CHANGES // 2):
        client.change(uri, (1, 0), (1, 0), "\n")
        client.change(uri, (1, 0), (2, 0), "")
    client.lenses(uri)
    took = time.perf_counter() - began
    grown = server.memory_info().rss - before
    say(f"memory after {_CHANGES:,} changes", f"{grown / 1e6:+.1f} MB of {before / 1e6:.0f} MB, in {took:.1f} s")
    client.quit()


def save_storm(place: _Place) -> None:
    client = place.editor()
    path = place.root / "model.py"
    uri = place.improved(client)
    before = place.control.heard("Search")
    began = time.perf_counter()
    worst = 0.0
    for number in range(_SAVES):
        client.rewrite(uri, IMPROVED.replace("@ x", f"@ x + {number}"))
        client.save(uri, path)
        asked = time.perf_counter()
        client.lenses(uri)
        worst = max(worst, time.perf_counter() - asked)
        time.sleep(max(0.0, began + 0.1 * (number + 1) - time.perf_counter()))
    client.until(lambda: client.codes(uri) == ["improved"])
    time.sleep(1.5)
    took = place.control.heard("Search") - before
    say(f"{_SAVES} saves in 10 s", f"{took} searches; lenses meanwhile in {1e3 * worst:.1f} ms at worst")
    client.quit()


def idle(place: _Place) -> None:
    client = place.editor()
    place.improved(client)
    time.sleep(1)
    server = psutil.Process(client.process.pid)
    before, messages = sum(server.cpu_times()[:2]), len(client.notifications) + len(client.asked)
    time.sleep(10)
    used = sum(server.cpu_times()[:2]) - before
    said = len(client.notifications) + len(client.asked) - messages
    say("idle for 10 s", f"{10 * used:.2f} % CPU, {said} messages, {server.memory_info().rss / 1e6:.0f} MB")
    client.quit()


def spread(work: Callable[[], object], count: int) -> str:
    times: list[float] = []
    for _ in range(count):
        began = time.perf_counter()
        work()
        times.append(time.perf_counter() - began)
        time.sleep(0.001)
    times.sort()
    p50, p99 = times[count // 2], times[count * 99 // 100]
    return f"p50 {1e3 * p50:.1f} ms, p99 {1e3 * p99:.1f} ms, worst {1e3 * times[-1]:.1f} ms of {count:,}"


def say(what: str, found: str) -> None:
    print(f"{what:<42} {found}", flush=True)


if __name__ == "__main__":
    main()
