"""`mugraph bench files PATHS`: any files with shapes, one after the other, each in a process of its own."""

from __future__ import annotations

import contextlib
import os
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any, cast

from rich.console import Console
from rich.table import Table

from mugraph.commands.bench import Json
from mugraph.commands.bench_journal import Journal
from mugraph.commands.bench_one import Asked
from mugraph.commands.bench_run import Run
from mugraph.commands.bench_whole import is_kernelbench
from mugraph.commands.common import FAILED, OK, WrongUsage, print_json, say_error
from mugraph.commands.setting_options import allowed
from mugraph.executors.choose import choose
from mugraph.executors.executor import CannotExecute
from mugraph.protocol.settings import CompareWith
from mugraph.reports.document import device_document
from mugraph.reports.many_files import Row, plot, summary
from mugraph.store.keys import versions
from mugraph.tune.against import CALLED_PEERS, PEERS
from mugraph.tune.device import UnknownTarget, alike, detect, resolve

_SKIPPED = frozenset({"__pycache__", "node_modules", "site-packages", "dist-packages"})


@dataclass(frozen=True)
class Outputs:
    """resume: answers are kept there as they come, and taken from there. plot: an SVG."""

    as_json: bool
    resume: Path | None = None
    plot: Path | None = None


def comparison(name: str) -> CompareWith:
    """What kernels must be faster than. Raises WrongUsage for a word that the setting does not have."""
    return cast("CompareWith", allowed("compare_with", name))


def bench_files(
    paths: Sequence[str], asked: Asked, outputs: Outputs, jobs: int = 1, within_s: float | None = None
) -> int:
    """Exit status: 1 where a file has no answer, or a region failed. Raises WrongUsage.

    jobs: files side by side, on all GPUs that are alike. within_s: no file begins later
    """
    files = python_files(paths)
    known = [*PEERS, *CALLED_PEERS]
    unknown = [name for name in asked.against if name not in known]
    if unknown:
        raise WrongUsage(f"there is no {', '.join(unknown)} to compare with; there are {', '.join(known)}")
    device = detect()
    try:
        choose(asked.executor).close()
        target = resolve(asked.target, device)
    except (CannotExecute, UnknownTarget) as error:
        raise WrongUsage(str(error)) from None
    journal = Journal(outputs.resume, asked, device)
    answers = Run(asked, journal, within_s, alike() if jobs > 1 else ()).answers(files, jobs)
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
        for file, one in answers.items():
            print(*whole_lines(file.stem, one), sep="", end="")
    bad = any("failed" in one or one["errors"] for one in answers.values())
    return FAILED if bad or any(str(row["status"]).startswith("failed") for row in workloads) else OK


def models_in(folder: Path, names: Sequence[str]) -> list[str]:
    """Paths of the folder's whole models, all or those named. Raises WrongUsage."""
    files = {file.stem: str(file) for file in python_files([str(folder)]) if is_kernelbench(file)}
    if unknown := [name for name in names if name not in files]:
        raise WrongUsage(f"no model is called {', '.join(unknown)}; there are {', '.join(files) or 'none'}")
    return [files[name] for name in names] if names else [*files.values()]


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


def _rows(answer: Json) -> list[Json]:
    return cast("list[Json]", answer["rows"])


def _row(one: Json) -> Row:
    gains = cast("dict[str, float]", one["gains"])
    offered, right = bool(one["offered"]), cast("bool | None", one["right"])
    code = gains.get("eager", cast("float | None", one["code_speedup"]) or 1.0) if offered else 1.0
    return Row(str(one["file"]), str(one["name"]), offered, right, code, min(gains.values(), default=1.0), gains)


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


_CLOCKS: Mapping[str, str] = {
    "device_us": "replayed one at a time",
    "device_in_row_us": "replayed in a row",
    "called_us": "called in a row",
}
"""Of times of whole models: what is said of each."""


def whole_lines(name: str, answer: Json) -> Iterator[str]:
    """What a call of the whole model takes, where that was timed. Lines end themselves."""
    whole = cast("dict[str, Any]", answer.get("kernelbench") or {})
    times = cast("dict[str, dict[str, Any]]", whole.get("times") or {})
    if times and (floor := whole.get("floor_us")) is not None:
        yield f"{name}, what its bytes take: {floor:.0f} µs\n"
    for clock, said in _CLOCKS.items():
        if us := times.get(clock):
            yield f"{name}, {said}: " + ", ".join(f"{way} {one:.0f} µs" for way, one in us.items()) + "\n"
    for way, why in times.get("refused", {}).items():
        yield f"{name}, {way}: {why}\n"


def _write(path: Path, text: str) -> None:
    part = path.with_name(f"{path.name}.part")
    try:
        part.write_text(text)
        os.replace(part, path)
    except OSError as error:
        with contextlib.suppress(OSError):
            part.unlink()
        say_error(f"{path} cannot be written: {error.strerror or error}")
