"""Kernels of public projects, read and verified; then the same kernels with seeded faults. A table.

    python -m tests.public.kernels CLONES [NAMES] [--work FOLDER] [--faults N] [--json FILE]

CLONES is a folder with clones of the projects (names as in kernel_table.py); those that are absent are skipped. Each
kernel is copied to the work folder with its launcher and what both name, and verified beside a reference in PyTorch.
Then N faults, three by default, are seeded into its text, and verified as well; whether one that is accepted is a fault
at all is decided by running it in float64 in Triton's interpreter. No GPU is needed. Not part of the suite.
"""

from __future__ import annotations

import argparse
import json
import os
import re
import select
import subprocess
import sys
import time
from collections import Counter
from collections.abc import Sequence
from dataclasses import asdict, dataclass, field
from pathlib import Path

from mugraph.solve.beside import Beside, beside
from mugraph.solve.foreign import KernelVerdict, verify_kernel
from mugraph.trace.tracer import trace_file
from mugraph.verification.float_test import FloatTester

from tests.public.kernel_bundle import Bundle, NotFound
from tests.public.kernel_faults import faults
from tests.public.kernel_table import KERNELS, PROJECTS, Entry

_JUDGED_S = 30.0
_SHAPE = re.compile(r"\w+=\w+\[([^\]]*)\]")


@dataclass
class Row:
    """
    state:  "right", "rejected" or "not read"
    bound:  of Theorem 2, or why there is none; of a right one
    faults: kind, what, the check that finds it, "" where none does, and what the judge says
    """

    name: str
    state: str
    reason: str = ""
    seconds: float = 0.0
    bound: str = ""
    faults: list[tuple[str, str, str, str]] = field(default_factory=list[tuple[str, str, str, str]])

    @property
    def found(self) -> int:
        return sum(bool(check) for _, _, check, _ in self.faults)


class Judge:
    """Says of two texts whether they are the same function, by running them."""

    def __init__(self) -> None:
        self._child: subprocess.Popen[str] | None = None

    def says(self, one: str, other: str, shapes: Sequence[Sequence[int]]) -> str:
        # A text that writes where it must not may leave a process that dies of the next one: ask another one.
        return self._asked(one, other, shapes) or self._asked(one, other, shapes) or "different: it crashes"

    def _asked(self, one: str, other: str, shapes: Sequence[Sequence[int]]) -> str:
        if self._child is None or self._child.poll() is not None:
            self._child = subprocess.Popen(
                [sys.executable, "-m", "tests.public.kernel_child"],
                stdin=subprocess.PIPE,
                stdout=subprocess.PIPE,
                stderr=subprocess.DEVNULL,
                text=True,
                env={**os.environ, "TRITON_INTERPRET": "1"},
            )
        assert self._child.stdin is not None
        assert self._child.stdout is not None
        try:
            print(json.dumps([one, other, shapes]), file=self._child.stdin, flush=True)
            ready, _, _ = select.select([self._child.stdout], [], [], _JUDGED_S)
            said = self._child.stdout.readline().strip() if ready else ""
        except BrokenPipeError:
            said = ""
        if not said:
            self.close()
        return said

    def close(self) -> None:
        if self._child is not None:
            self._child.kill()
            self._child.wait()
            self._child = None


def text_of(clones: Path, entry: Entry) -> str:
    return Bundle(clones / entry.project, PROJECTS[entry.project]).text(entry.file, entry.launcher)


def program_of(entry: Entry, folder: Path) -> Beside:
    """Raises ValueError."""
    path = folder / f"{entry.name}_reference.py"
    path.write_text(f"import torch\nimport torch.nn.functional as F\n\n\n{entry.reference}")
    name = re.findall(r"def (\w+)", entry.reference)[-1]
    program = beside(trace_file(path, qualname=name), name)
    if isinstance(program, str):
        raise ValueError(program)
    return program


def state_of(found: KernelVerdict) -> tuple[str, str]:
    reason = found.verdict.reason or ""
    if found.verdict.passed:
        return "right", ""
    return ("not read" if found.check == "unread" or not found.check else "rejected"), reason


def row(entry: Entry, clones: Path, work: Path, wanted: int, tester: FloatTester, judge: Judge) -> Row:
    since = time.monotonic()
    try:
        text = text_of(clones, entry)
        program = program_of(entry, work)
    except (NotFound, ValueError, OSError) as error:
        return Row(entry.name, "not read", f"{type(error).__name__}: {error}")
    (work / f"{entry.name}.py").write_text(text)
    found = verify_kernel(program, text, "launch", tester=tester)
    state, reason = state_of(found)
    if found.verdict.passed and found.verdict.max_rel_error is None:
        reason = found.float_note or "no floating-point test"
    made = Row(entry.name, state, reason, time.monotonic() - since)
    if state != "right":
        return made
    verdict = found.verdict
    made.bound = f"no bound ({verdict.bound_note})" if verdict.bound is None else f"bound {verdict.bound:.0e}"
    shapes = [[int(n) for n in one.split(",") if n] for one in _SHAPE.findall(entry.reference)]
    for fault in faults(text, entry.name):
        if made_enough(made, wanted):
            break
        check = verify_kernel(program, fault.text, "launch", tester=tester).check
        says = judge.says(text, fault.text, shapes)
        if check == "unread" or (not check and not says.startswith("different")):
            continue  # no fault, or not known to be one
        made.faults.append((fault.kind, fault.what, check, says))
    made.seconds = time.monotonic() - since
    return made


def made_enough(made: Row, wanted: int) -> bool:
    return len(made.faults) >= wanted


def main() -> None:
    parser = argparse.ArgumentParser(description=(__doc__ or "").split("\n")[0])
    parser.add_argument("clones", type=Path)
    parser.add_argument("names", nargs="*", default=[])
    parser.add_argument("--work", type=Path, default=Path("public-kernels"))
    parser.add_argument("--faults", type=int, default=3)
    parser.add_argument("--json", type=Path)
    given = parser.parse_args()
    given.work.mkdir(parents=True, exist_ok=True)
    rows: list[Row] = []
    judge = Judge()
    try:
        with FloatTester() as tester:
            for entry in KERNELS:
                if given.names and not any(entry.name.startswith(name) for name in given.names):
                    continue
                if not (given.clones / entry.project).is_dir():
                    continue
                rows.append(row(entry, given.clones, given.work, given.faults, tester, judge))
                _tell(rows[-1])
                if given.json:
                    given.json.write_text(json.dumps([asdict(one) for one in rows], indent=1))
    finally:
        judge.close()
    _total(rows)


def _tell(one: Row) -> None:
    found = f", {one.found} of {len(one.faults)} faults found" if one.state == "right" else ""
    print(f"{one.name:34} {one.state}{found} ({one.seconds:.1f} s) {one.bound} {one.reason}", flush=True)
    for kind, what, check, says in one.faults:
        print(f"    {check or 'MISSED':12} {kind}: {what}; run: {says}", flush=True)


def _total(rows: Sequence[Row]) -> None:
    states = Counter(one.state for one in rows)
    checks = Counter(check or "missed" for one in rows for _, _, check, _ in one.faults)
    print(f"{len(rows)} kernels: " + ", ".join(f"{count} {state}" for state, count in states.most_common()))
    print(f"{sum(one.bound.startswith('bound') for one in rows)} with a bound on accepting a wrong one")
    print(f"{sum(checks.values())} faults: " + ", ".join(f"{count} {check}" for check, count in checks.most_common()))


if __name__ == "__main__":
    main()
