"""Makes changes to programs and to the same with their kernels applied, and says what came of each.

The kernels run in Triton's interpreter: TRITON_INTERPRET=1. A line of standard input is a JSON list: a change's name,
and a folder with its program in `original` and in `edited`. A line of standard output is a JSON object, with

"first": the change is made before the program has run; "later": when it has run, with its kernels, and guards are asked
in C; "in Python": the same without C. Of each:
{"launches": kernels that ran after the change, "warmed": launches of each run before it, "wrong": what is not as it
must be}. Each change is made in a fork, a lasting one in a fork for each side; there the program is imported by its
own name.
"""

from __future__ import annotations

import gc
import importlib
import json
import os
import pickle
import shutil
import signal
import sys
import tempfile
import traceback
from collections.abc import Callable
from functools import partial
from pathlib import Path
from typing import Any

import torch
from mugraph.verification.float_child import patch_interpreter

from tests.changes.case import Case, Change, all_changes
from tests.changes.described import Raised, described, differences, inexact

TIMEOUT_S = 100


def forked(run: Callable[[], dict[str, Any]]) -> dict[str, Any]:
    """What a fork of this process returns, or {"died": how}."""
    reading, writing = os.pipe()
    child = os.fork()
    if child == 0:
        status = 1
        try:
            os.close(reading)
            gc.disable()  # it would copy every page it looks at
            signal.alarm(TIMEOUT_S)
            with os.fdopen(writing, "wb") as sink:
                try:
                    said = pickle.dumps(run())
                except BaseException:
                    said = pickle.dumps({"died": traceback.format_exc()})
                sink.write(said)
            status = 0
        finally:
            os._exit(status)
    os.close(writing)
    with os.fdopen(reading, "rb") as source:
        said = source.read()
    _, status = os.waitpid(child, 0)
    return pickle.loads(said) if status == 0 else {"died": os.waitstatus_to_exitcode(status)}


WARM = 4
"""Runs after which guards remember all that they can: what held twice, and that it can be asked in C."""


def ran(
    change: Change, folder: Path, *, warm: bool = False, native: bool = False, dtype: torch.dtype = torch.float32
) -> dict[str, Any]:
    """One side: the program of this folder, changed, and run. warm: when it has run before; native: see watch"""
    sys.path.insert(0, str(folder))
    torch.set_default_dtype(dtype)
    torch.manual_seed(3)
    case = Case.of(change.program, dtype)
    if (folder / f"{change.program.file}_mugraph.py").exists():
        watch(importlib.import_module(f"{change.program.file}_mugraph"), case, native=native)
    for _ in range(WARM if warm else 0):
        case.warm()
    try:
        result = change.make(case)
        if result is None:
            result = case.run()
    except Exception as error:
        result = Raised(type(error).__qualname__)
    launches = case.launches
    said = {"result": described(result, case.inputs), "inputs": described(case.inputs)}
    return {"said": said, "launches": launches, "warmed": case.warmed}


def ran_twice(change: Change, folder: Path) -> dict[str, Any]:
    """The original; where a kernel may run, beside it "exact": the same in double precision."""
    once = ran(change, folder)
    if change.runs == "original":
        return once
    forget(change, folder)
    return once | {"exact": ran(change, folder, dtype=torch.float64)["said"]}


def ran_both(change: Change, before: Path, after: Path) -> dict[str, Any]:
    """Both sides in one process, for changes of which nothing is left afterwards."""
    original = ran_twice(change, before)
    forget(change, before)
    torch.compiler.reset()
    later = ran(change, after, warm=True, native=True)
    forget(change, after)
    torch.compiler.reset()
    return {"original": original, "later": later, "in Python": ran(change, after, warm=True)}


def forget(change: Change, folder: Path) -> None:
    """The program's files are imported anew."""
    sys.path.remove(str(folder))
    for path in folder.glob("*.py"):
        sys.modules.pop(path.stem, None)
    torch.set_default_dtype(torch.float32)


def watch(kernels: Any, case: Case, *, native: bool) -> None:
    """Lets the kernels run on tensors of the CPU, as if it were the device they are made for, and counts them. native:
    with guards in C, as they are after the first launch on a GPU"""
    from triton.runtime.interpreter import GridExecutor

    launch = GridExecutor.__call__

    def counted(self: Any, *arguments: Any, **options: Any) -> Any:
        case.launches += 1
        return launch(self, *arguments, **options)

    GridExecutor.__call__ = counted
    kernels._tested_gpu = lambda kind, index: kind == "cpu"
    assert not native or kernels._make_native()


def judged(change: Change, got: dict[str, Any], original: dict[str, Any]) -> dict[str, Any]:
    if "died" in got:
        return {"launches": 0, "warmed": [], "wrong": [f"it died: {got['died']}"]}
    launched = got["launches"] > 0
    wrong = list(differences(got["said"], original["said"], "it", bits=change.runs == "original" or not launched))
    if launched and change.runs != "original" and not wrong:
        wrong += inexact(got["said"], original["said"], original["exact"])
    return {"launches": got["launches"], "warmed": got["warmed"], "wrong": wrong}


def edited_copy(change: Change, folder: Path, to: Path) -> Path:
    """The program's folder, or a copy with the change's edits in it."""
    if not change.edits:
        return folder
    shutil.copytree(folder, to, ignore=shutil.ignore_patterns("__pycache__"))
    for name, (old, new) in change.edits.items():
        text = (to / name).read_text()
        assert text.count(old) == 1, f"{old!r} is in {name} {text.count(old)} times"
        (to / name).write_text(text.replace(old, new))
    return to


def came_of(change: Change, folder: Path) -> dict[str, Any]:
    before, after = folder / "original", folder / "edited"
    if not (change.lasting or change.edits):
        both = forked(partial(ran_both, change, before, after))
        sides = ("later", "in Python")
        return {side: judged(change, both.get(side, both), both.get("original", {})) for side in sides}
    with tempfile.TemporaryDirectory() as temporary:
        before = edited_copy(change, before, Path(temporary, "original"))
        after = edited_copy(change, after, Path(temporary, "edited"))
        original = forked(partial(ran_twice, change, before))
        if "died" in original:
            return {"original": {"launches": 0, "warmed": [], "wrong": [original["died"]]}}
        came = {"first": judged(change, forked(partial(ran, change, after)), original)}
        if not change.edits:
            for side, native in (("later", True), ("in Python", False)):
                again = forked(partial(ran, change, after, warm=True, native=native))
                came[side] = judged(change, again, original)
        return came


def main() -> None:
    with os.fdopen(os.dup(1), "w") as answers:
        os.dup2(2, 1)  # what programs print is no answer
        patch_interpreter()
        sys.dont_write_bytecode = False  # each fork imports the same files, of which the runtime is long to compile
        changes = all_changes()
        torch.compile(torch.sin, backend="aot_eager")(torch.ones(3))  # what is imported at its first use
        torch.compiler.reset()
        gc.freeze()
        for line in sys.stdin:
            name, folder = json.loads(line)
            answers.write(json.dumps(came_of(changes[name], Path(folder))) + "\n")
            answers.flush()


if __name__ == "__main__":
    main()
