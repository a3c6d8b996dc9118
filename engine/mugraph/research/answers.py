"""`python -m mugraph.research.answers --json OUT [FILE ...]`: the samples from a cold start, a process and empty caches
for each file: seconds until the answer, times beside PyTorch's on both clocks, and estimates beside what was measured.

It stops after `--limit` seconds and goes on where it stopped when it is called again. `--show` only prints the tables.
"""

from __future__ import annotations

import argparse
import contextlib
import os
import queue
import subprocess
import sys
import tempfile
import threading
import time
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import IO

import msgspec

from mugraph.one_thread import with_one_thread
from mugraph.protocol.settings import EngineSettings
from mugraph.research.answer import Answer
from mugraph.research.answers_table import plot, tables
from mugraph.store.keys import versions

CHILD = (sys.executable, "-m", "mugraph.research.answer")
_ENDS_S = 20.0


class Answers(msgspec.Struct):
    """budget_s: of each search. import_s: of the first import of torch, which no answer counts. done: files that all
    regions of are answered"""

    budget_s: float
    versions: Mapping[str, str]
    import_s: float = 0.0
    done: list[str] = []
    answers: list[Answer] = []


def read(path: Path) -> Answers:
    """Raises OSError, msgspec.DecodeError."""
    return msgspec.json.decode(path.read_bytes(), type=Answers)


def write(found: Answers, path: Path) -> None:
    """To a file beside it first."""
    new = path.with_name(f"{path.name}.new")
    new.write_bytes(msgspec.json.format(msgspec.json.encode(found), indent=1) + b"\n")
    new.replace(path)


def cold(
    file: Path,
    found: Answers,
    target: str,
    until: float,
    out: Path,
    file_budget_s: float = EngineSettings.file_budget_s,
) -> None:
    """Answer the file's regions that have no answer yet, each kept as it comes."""
    known = [str(one.number) for one in found.answers if one.file == str(file)]
    with tempfile.TemporaryDirectory(prefix="mugraph-cold-", ignore_cleanup_errors=True) as caches:
        folders = ("MUGRAPH_CACHE_DIR", "TRITON_CACHE_DIR", "TORCHINDUCTOR_CACHE_DIR", "CUDA_CACHE_PATH")
        environment = with_one_thread({**os.environ, **{name: f"{caches}/{name.lower()}" for name in folders}})
        asked = [str(file), str(found.budget_s), str(file_budget_s), target, str(time.monotonic()), *known]
        child = subprocess.Popen([*CHILD, *asked], stdin=subprocess.DEVNULL, stdout=subprocess.PIPE, env=environment)
        assert child.stdout is not None
        lines: queue.Queue[bytes | None] = queue.Queue()
        threading.Thread(target=_lines, args=(child.stdout, lines), daemon=True).start()
        try:
            while (line := lines.get(timeout=max(0.1, until - time.monotonic()))) is not None:
                found.answers.append(msgspec.json.decode(line, type=Answer))
                write(found, out)
                one = found.answers[-1]
                print(f"{one.name}: {one.status}, {one.start_s:.1f} + {one.seconds:.1f} s", file=sys.stderr, flush=True)
            if child.wait() == 0:
                found.done.append(str(file))
            else:
                print(f"{file}: its process ended with status {child.returncode}", file=sys.stderr)
        except queue.Empty:
            print(f"{file}: not finished; call again to go on", file=sys.stderr)
        finally:
            _end(child)
    write(found, out)


def _import_s() -> float:
    """Of the first import of torch on a machine, whose files are not read before."""
    began = time.monotonic()
    subprocess.run([sys.executable, "-c", "import torch, triton; torch.cuda.is_available()"], check=False)
    return time.monotonic() - began


def _lines(stream: IO[bytes], lines: queue.Queue[bytes | None]) -> None:
    for line in stream:
        lines.put(line)
    lines.put(None)


def _end(child: subprocess.Popen[bytes]) -> None:
    child.terminate()  # it ends what it has started
    with contextlib.suppress(subprocess.TimeoutExpired):
        child.wait(_ENDS_S)
    child.kill()
    child.wait()


def main(arguments: Sequence[str]) -> int:
    """Exit status: 1 while there is more to do."""
    parser = argparse.ArgumentParser(prog="python -m mugraph.research.answers")
    parser.add_argument("files", nargs="*", type=Path, help="default: samples/*.py")
    parser.add_argument("--json", type=Path, required=True, metavar="OUT", help="kept here, and continued")
    parser.add_argument("--budget", type=float, default=EngineSettings.budget_s, metavar="SECONDS", help="of a search")
    parser.add_argument("--target", default=EngineSettings.target)
    parser.add_argument("--limit", type=float, default=540.0, metavar="SECONDS", help="of this call")
    parser.add_argument("--plot", type=Path, metavar="SVG", help="estimated against measured speedups")
    parser.add_argument("--show", action="store_true", help="run nothing")
    given = parser.parse_args(arguments)
    until = time.monotonic() + given.limit
    out: Path = given.json
    try:
        found = read(out) if out.exists() else Answers(given.budget, versions())
    except (OSError, msgspec.DecodeError) as error:
        print(f"{out} cannot be read: {error}", file=sys.stderr)
        return 2
    files: list[Path] = given.files or sorted(Path("samples").glob("*.py"))
    missing = [file for file in files if not file.is_file()]
    if missing or not files:
        print(f"no file {', '.join(map(str, missing)) or 'in samples'}", file=sys.stderr)
        return 2
    left: list[Path] = []
    if not given.show:
        if not found.import_s:
            found.import_s = _import_s()
        for file in files:
            if str(file) not in found.done and time.monotonic() < until:
                cold(file, found, given.target, until, out)
        left = [file for file in files if str(file) not in found.done]
    print(tables(found.answers))
    print(f"first import of torch on this machine, not counted: {found.import_s:.1f} s; budget {found.budget_s:g} s")
    if given.plot is not None:
        given.plot.write_text(plot(found.answers), encoding="utf-8")
    if left:
        print(f"still to do: {', '.join(file.stem for file in left)}; call again to go on", file=sys.stderr)
    return 1 if left else 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
