"""What the fake engine is told to do, what it notes down, and how it misbehaves when it is told to."""

from __future__ import annotations

import json
import os
import signal
import subprocess
import sys
import time
from pathlib import Path
from typing import Any

CONTROL = Path(sys.argv[1])


def control() -> dict[str, Any]:
    return json.loads(CONTROL.read_text())


def note(kind: str, text: str) -> None:
    with CONTROL.with_name(f"{CONTROL.name}.{kind}").open("a") as file:
        file.write(text + "\n")


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
