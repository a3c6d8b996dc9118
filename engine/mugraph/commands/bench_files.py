"""`mugraph bench files PATHS`: any files with shapes, one after the other, each in a process of its own."""

from __future__ import annotations

import contextlib
import json
import os
import signal
import subprocess
import sys
import tempfile
import time
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from hashlib import sha256
from pathlib import Path
from typing import Any, cast

import msgspec
from rich.console import Console
from rich.table import Table

from mugraph.commands.bench import Json
from mugraph.commands.bench_one import Asked
from mugraph.commands.common import FAILED, OK, WrongUsage, print_json, say_error
from mugraph.executors.choose import choose
from mugraph.executors.executor import CannotExecute
from mugraph.reports.document import device_document
from mugraph.reports.many_files import Row, plot, summary
from mugraph.store.keys import versions
from mugraph.tune.against import PEERS
from mugraph.tune.device import Device, UnknownTarget, detect, resolve

_SKIPPED = frozenset({"__pycache__", "node_modules", "site-packages", "dist-packages"})


@dataclass(frozen=True)
class Outputs:
    """resume: answers are kept there as they come, and taken from there. plot: an SVG."""

    as_json: bool
    resume: Path | None = None
    plot: Path | None = None


def bench_files(paths: Sequence[str], asked: Asked, outputs: Outputs) -> int:
    """Exit status: 1 where a file has no answer, or a region failed. Raises WrongUsage."""
    files = python_files(paths)
    unknown = [name for name in asked.against if name not in PEERS]
    if unknown:
        raise WrongUsage(f"there is no {', '.join(unknown)} to compare with; there are {', '.join(PEERS)}")
    device = detect()
    try:
        choose(asked.executor).close()
        target = resolve(asked.target, device)
    except (CannotExecute, UnknownTarget) as error:
        raise WrongUsage(str(error)) from None
    journal = Journal(outputs.resume, asked, device)
    answers: dict[Path, Json] = {}
    for number, file in enumerate(files, start=1):
        known = journal.of(file)
        answers[file] = known if known is not None else _answered(file, asked)
        if known is None:
            journal.keep(file, answers[file])
        said = " (as it was)" if known is not None else ""
        print(f"{number}/{len(files)} {file}: {_in_words(answers[file])}{said}", file=sys.stderr, flush=True)
    workloads = [row for one in answers.values() for row in _rows(one)]
    rows = [_row(one) for one in workloads]
    measured = device.kind == "gpu" and target.capability == device.capability
    total = summary(rows, len(files), sum("failed" not in one for one in answers.values()), measured=measured)
    if outputs.plot is not None:
        _write(outputs.plot, plot(rows, f"{len(files)} files, {'measured' if measured else 'estimated'}"))
    if outputs.as_json:
        of_files = [
            {"file": str(file), **{name: value for name, value in one.items() if name != "rows"}}
            for file, one in answers.items()
        ]
        print_json(
            {
                "device": {**device_document(device), "target": target.name},
                "versions": versions(),
                "workloads": workloads,
                "files": of_files,
                "summary": total,
            }
        )
    else:
        _print(workloads, total)
    bad = any("failed" in one or one["errors"] for one in answers.values())
    return FAILED if bad or any(str(row["status"]).startswith("failed") for row in workloads) else OK


def python_files(paths: Sequence[str]) -> list[Path]:
    """Files, and those in folders, in their order, kernel modules apart. Raises WrongUsage."""
    if not paths:
        raise WrongUsage("which files? write, for example: mugraph bench files models/")
    found: dict[Path, None] = {}
    for text in paths:
        path = Path(text)
        if path.is_dir():
            found |= dict.fromkeys(_inside(path))
        elif path.exists():
            found[path] = None
        else:
            raise WrongUsage(f"{path} does not exist")
    if not found:
        raise WrongUsage(f"there is no Python file in {', '.join(paths)}")
    return list(found)


def _inside(folder: Path) -> Iterator[Path]:
    for root, folders, files in os.walk(folder):
        folders[:] = sorted(name for name in folders if name not in _SKIPPED and not name.startswith("."))
        for name in sorted(files, key=_in_order):
            if name.endswith(".py") and not name.endswith("_mugraph.py") and not name.startswith("mugraph_runtime_"):
                yield Path(root, name)


def _in_order(name: str) -> tuple[int, str]:
    """2_x.py before 10_y.py."""
    number = name.partition("_")[0]
    return (int(number) if number.isdecimal() else 0, name)


class Journal:
    """Answers that were kept: a line of JSON each. One counts for a file as it is now, asked in the same way."""

    def __init__(self, path: Path | None, asked: Asked, device: Device) -> None:
        self._path = path
        self._asked = json.dumps([msgspec.to_builtins(asked), device.name, versions()], sort_keys=True)
        self._known: dict[str, Json] = {}
        if path is None:
            return
        try:
            for line in path.read_bytes().splitlines() if path.exists() else ():
                with contextlib.suppress(ValueError, KeyError, TypeError):  # cut off when the run ended
                    one = json.loads(line)
                    self._known[one["key"]] = one["answer"]
            path.open("ab").close()
        except OSError as error:
            raise WrongUsage(f"{path} cannot be read and written ({error.strerror or error})") from None

    def of(self, file: Path) -> Json | None:
        return self._known.get(self._key(file)) if self._path is not None else None

    def keep(self, file: Path, answer: Json) -> None:
        if self._path is None:
            return
        line = json.dumps({"file": str(file), "key": self._key(file), "answer": answer}, allow_nan=False)
        try:
            with self._path.open("ab") as journal:
                cut_off = journal.tell() > 0 and self._path.read_bytes()[-1:] != b"\n"
                journal.write(b"\n" * cut_off + line.encode() + b"\n")
        except OSError as error:
            say_error(f"the answer cannot be kept in {self._path}: {error.strerror or error}")

    def _key(self, file: Path) -> str:
        try:
            text = file.read_bytes()
        except OSError:
            text = b""
        return sha256(b"\0".join([os.path.abspath(file).encode(), text, self._asked.encode()])).hexdigest()[:32]


def _answered(file: Path, asked: Asked) -> Json:
    """With "failed", where there is no answer."""
    began = time.monotonic()
    with tempfile.TemporaryDirectory(prefix="mugraph-bench-", ignore_cleanup_errors=True) as folder:
        out = Path(folder, "answer.json")
        options = msgspec.json.encode(asked).decode()
        command = [sys.executable, "-m", "mugraph.commands.bench_one", str(file), str(out), options]
        with Path(folder, "said").open("w+b") as said:
            child = subprocess.Popen(
                command, stdin=subprocess.DEVNULL, stdout=said, stderr=said, start_new_session=True
            )
            why: str | None = None
            try:
                child.wait(timeout=asked.limit_s)
            except subprocess.TimeoutExpired:
                why = f"it took longer than {asked.limit_s:g} s"
            finally:
                _end(child)
            said.seek(0)
            lines = [line for line in said.read().decode(errors="replace").splitlines() if line.strip()]
        if why is None:
            try:
                return cast(Json, json.loads(out.read_bytes()))
            except (OSError, ValueError):
                status = child.returncode
                ended = f"ended by signal {-status}" if status < 0 else f"status {status}"
                why = f"{ended}: {lines[-1]}" if lines else ended
    return {"failed": why, "errors": [], "seconds": time.monotonic() - began, "kernelbench": None, "rows": []}


def _end(child: subprocess.Popen[bytes]) -> None:
    """With all processes that it has started."""
    with contextlib.suppress(ProcessLookupError, PermissionError):
        os.killpg(child.pid, signal.SIGKILL)
    child.wait()


def _rows(answer: Json) -> list[Json]:
    return cast("list[Json]", answer["rows"])


def _row(one: Json) -> Row:
    gains = cast("dict[str, float]", one["gains"])
    offered, right = bool(one["offered"]), cast("bool | None", one["right"])
    code = gains.get("eager", cast("float | None", one["code_speedup"]) or 1.0) if offered else 1.0
    return Row(str(one["file"]), str(one["name"]), offered, right, code, min(gains.values(), default=1.0), gains)


def _in_words(answer: Json) -> str:
    if "failed" in answer:
        return f"no answer, {answer['failed']}"
    rows = _rows(answer)
    offered = sum(bool(row["offered"]) for row in rows)
    spent = f"{cast(float, answer['seconds']):.0f} s"
    errors = cast("list[str]", answer["errors"])
    if errors and not rows:
        return f"{errors[0]} ({spent})"
    return f"{offered} of {len(rows)} region{'' if len(rows) == 1 else 's'} improved ({spent})"


def _print(workloads: Sequence[Json], total: Json) -> None:
    mark = "" if total["source"] == "measured" else "~"
    table = Table(title=f"gains ({total['source']})", title_justify="left")
    peers = list(cast("dict[str, Any]", total["faster_than"]))
    for heading in ("region", "status"):
        table.add_column(heading, no_wrap=True)
    for heading in ("µs", *peers, "right"):
        table.add_column(heading, justify="right", no_wrap=True)
    table.add_column("why")
    for one in workloads:
        row, us = _row(one), cast("float | None", one["optimized_us"])
        gains = [f"{mark}{row.peers[name]:.2f}" if name in row.peers and row.offered else "-" for name in peers]
        right = {True: "yes", False: "NO", None: "-"}[row.right]
        status, why = str(one["status"]).partition(" (")[0], str(one["reason"] or "")
        shown = f"{mark}{us:.1f}" if us is not None and row.offered else "-"
        table.add_row(row.name, status, shown, *gains, right, why)
    Console(width=max(Console().width, 120)).print(table)
    print(
        f"{total['answered']} of {total['files']} files answered; {total['offered']} of {total['regions']} regions "
        f"improved, {total['right']} right, {total['wrong']} wrong"
    )
    faster = cast("dict[str, int]", total["faster_than"])
    means = cast("dict[str, float | None]", total["geometric_mean"])
    for name in peers:
        mean = means[name]
        print(f"faster than {name}: {faster[name]}; geometric mean {mark}{mean:.2f}" if mean is not None else name)


def _write(path: Path, text: str) -> None:
    part = path.with_name(f"{path.name}.part")
    try:
        part.write_text(text)
        os.replace(part, path)
    except OSError as error:
        with contextlib.suppress(OSError):
            part.unlink()
        say_error(f"{path} cannot be written: {error.strerror or error}")
