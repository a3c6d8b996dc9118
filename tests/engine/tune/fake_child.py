"""A measuring process without a GPU: subjects are obeyed by name. Run as a script.

"hang" never answers, "once" not the first time that it is asked (its source names a folder to remember that in).
"late" prepares, and breaks what comes next, once (the same). "nurse" has started a process of its own, whose id it
writes to the file that its source names. "slow" takes a third of a second, "die" ends the process at once, "poison"
is a fatal failure, "bad" fails and the process lives on, "large" has no memory beside others and "endless" none at all.
"waits" is compiled once there is the file that its source names. Anything else prepares; its time is the number after
the last underscore ("fast_3" takes 3 µs). What a program calls takes ten times that, and 5 µs more once it is entered;
entering "die" ends the process, entering "refuse" fails.
Started with "after" and a path, it greets once there is such a file.
"""

from __future__ import annotations

import os
import subprocess
import sys
import time
from pathlib import Path

from mugraph.pickled import read_frame, write_frame
from mugraph.tune.messages import (
    DIFFERS,
    REFUSED,
    Agree,
    Agreed,
    CallEach,
    Drop,
    Enter,
    Failure,
    Hello,
    Ok,
    Prepare,
    Replay,
    Reply,
    Request,
    Timed,
    Warm,
)

PARENT = os.getppid()


def _is_new(mark: Path) -> bool:
    """Whether it was not there before."""
    try:
        mark.touch(exist_ok=False)
    except FileExistsError:
        return False
    return True


BROKEN = Failure("CUDA error: unspecified launch failure", fatal=True)
_marks: list[Path] = []
"""Files: where one is not there, what was prepared breaks the process."""


def answer(request: Request, ready: set[str]) -> Reply:
    if isinstance(request, Agree | Replay) and any(_is_new(mark) for mark in _marks):
        return BROKEN
    match request:
        case Prepare(subject, _):
            kind = subject.name.rpartition(" ")[2]  # those of a lot are numbered before it
            if kind.startswith("hang"):
                time.sleep(60)
            if kind.startswith("once") and _is_new(Path(subject.source) / subject.name):
                while os.getppid() == PARENT:
                    time.sleep(0.05)
            if kind.startswith("nurse"):
                child = subprocess.Popen([sys.executable, "-c", "import time; time.sleep(600)"])
                Path(subject.source).write_text(str(child.pid))
            if kind.startswith("die"):
                print("Fatal Python error: Segmentation fault", file=sys.stderr, flush=True)
                os._exit(11)
            if kind.startswith("poison"):
                return Failure("CUDA error: an illegal memory access was encountered", fatal=True)
            if kind.startswith("slow"):
                time.sleep(0.3)
            if kind.startswith("bad"):
                return Failure("OutOfResources: shared memory")
            if kind.startswith("endless") or (kind.startswith("large") and ready):
                return Failure("there was too little memory", memory=True)
            if kind.startswith("late"):
                _marks.append(Path(subject.source) / "late")
            ready.add(subject.name)
            return Ok()
        case Replay(names, rounds):
            missing = set(names) - ready
            if missing:
                return Failure(f"not prepared: {missing}")
            return Timed({name: (float(name.rsplit("_", 1)[1]),) * rounds for name in names})
        case Agree(subject, _, _):
            error = 0.5 if subject.name.startswith("wrong") else 1e-4
            return Agreed(error < 1e-2, error, 1e-2)
        case Warm(subject, _):
            if subject.name.startswith("once") and _is_new(Path(subject.source) / subject.name):
                os._exit(11)
            while subject.name.startswith("waits") and not Path(subject.source).exists() and os.getppid() == PARENT:
                time.sleep(0.01)
            return Failure("no such instruction") if subject.name.startswith("bad") else Ok(0.1)
        case Enter(name, applied, reference):
            if applied.text == "die":
                os._exit(11)
            if applied.text == "refuse":
                return Failure("the guard refuses the call")
            if applied.text == "never":
                return Failure(f"NotCalled: the guard of model {REFUSED}")
            ready.add(f"entered {name}")
            if applied.text == "further" and reference is not None:
                return Failure(f"{DIFFERS} by 2e-3, more than 1e-3, on the program's own tensors")
            return Ok()
        case CallEach(names, rounds):
            missing = set(names) - ready
            if missing:
                return Failure(f"not prepared: {missing}")
            # A call costs ten times as much as its kernel; with guards five microseconds more.
            us = {name: 10 * float(name.rsplit("_", 1)[1]) + 5 * (f"entered {name}" in ready) for name in names}
            return Timed({name: (us[name],) * rounds for name in names})
        case Drop(names):
            if not names:
                ready.clear()
            ready.difference_update(names, {f"entered {name}" for name in names})
            return Ok()


def main() -> None:
    if "refuse" in sys.argv:
        write_frame(sys.stdout.buffer, Failure("PyTorch sees no CUDA device", fatal=True))
        return
    while "after" in sys.argv and not Path(sys.argv[-1]).exists():
        time.sleep(0.01)
    write_frame(sys.stdout.buffer, Hello("Fake GPU", {"torch": "0"}, 1 << 20))
    ready: set[str] = set()
    while (request := read_frame(sys.stdin.buffer)) is not None:
        write_frame(sys.stdout.buffer, answer(request, ready))  # type: ignore[arg-type]


if __name__ == "__main__":
    main()
