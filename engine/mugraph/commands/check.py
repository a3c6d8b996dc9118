"""`mugraph check`: do generated kernels still hold, and which calls of a program do they take?"""

from __future__ import annotations

import os
import sys
from collections.abc import Sequence
from itertools import groupby
from pathlib import Path

from mugraph.checking.again import Checked, Here, modules_in
from mugraph.checking.kept import keep
from mugraph.checking.run import ProgramRun, RegionRun, run_watched
from mugraph.checking.together import check_all
from mugraph.commands.check_calls import Lowerings, calls_again, with_calls
from mugraph.commands.common import FAILED, OK, WrongUsage, print_json, say_error
from mugraph.recording.launch import CannotRun
from mugraph.store.keys import versions
from mugraph.tune.device import detect
from mugraph.verification.verdict import Lowering

_NOT_TRACED = Lowering(None, "nothing was run again (--trace traces the files as they were, which runs their code)")
_MOST = 5
"""Reasons that are said of one region."""
_MOST_SIZES = 3
"""Things with other sizes that are named."""


def check_run(command: Sequence[str], *, as_json: bool) -> int:
    """The program's own status. What is said of it goes to standard error; with --json the document goes to standard
    output, and what the program prints to standard error."""
    if not command:
        raise WrongUsage("what shall be run? write, for example: mugraph check --run -- python train.py")
    sys.stdout.flush()
    try:
        run = run_watched(command, sys.stderr.fileno() if as_json else None)
    except CannotRun as error:
        raise WrongUsage(str(error)) from None
    for file, regions in groupby(run.regions, key=lambda one: one.file):
        try:
            keep(file, list(regions))
        except OSError as error:
            say_error(f"the check of {_short(file)} cannot be kept: {error.strerror or error}")
    if as_json:
        print_json({"regions": [_document(region) for region in run.regions]})
    for sentence in _summary(run, as_json):
        say_error(sentence)
    return run.status


def _document(region: RegionRun) -> dict[str, object]:
    return {
        "function": region.function,
        "calls": region.calls,
        "taken": region.taken,
        "refused": [{"why": why, "calls": calls} for why, calls in region.refused],
        "other_sizes": region.other_sizes,
    }


def _summary(run: ProgramRun, as_json: bool) -> list[str]:
    if not run.regions:
        return [
            "the program imported no generated kernel module: nothing to check "
            "(mugraph optimize FILE --apply writes one)"
        ]
    lost = [f"{run.uncounted} calls more, for which there was no room among the counts"] if run.uncounted else []
    return lost if as_json else [line for region in run.regions for line in _of_region(region)] + lost


def _of_region(region: RegionRun) -> list[str]:
    place = f"{_short(region.file)}: {region.function}"
    if not region.calls:
        return [f"{place}: never called"]
    said = f"{place}: its kernel took {region.taken} of {region.calls} call{'' if region.calls == 1 else 's'}"
    lines = [said] + [f"  {calls} not: {why}" for why, calls in region.refused[:_MOST]]
    left = sum(calls for _, calls in region.refused[_MOST:])
    lines += [f"  {left} not, for other reasons"] if left else []
    return lines + ([_of_sizes(region)] if region.other_sizes else [])


def _of_sizes(region: RegionRun) -> str:
    said = ", ".join(f"{what} {_span(sizes)}" for what, sizes in region.sizes[:_MOST_SIZES])
    more = ", …" if len(region.sizes) > _MOST_SIZES else ""
    calls = f"{region.other_sizes} of {region.calls} calls" if region.calls > 1 else "the call"
    return (
        f"  {calls} had other sizes, and nothing else that differs ({said}{more}); a range of sizes in a comment above "
        "the function, like “# mugraph: n=1..64, x=f16[n, 4096]”, makes kernels for all of them"
    )


def _span(sizes: Sequence[int]) -> str:
    return str(sizes[0]) if len(sizes) == 1 else f"{sizes[0]} to {sizes[-1]}"


def _short(path: Path) -> str:
    relative = os.path.relpath(path)
    return str(path) if relative.startswith("..") else relative


def check_paths(paths: Sequence[str], *, as_json: bool, seed: int | None = None, trace: bool = False) -> int:
    """Exit status: 1 where something does not hold. seed: of what the verifier draws; None repeats for each kernel what
    was drawn when it was first verified. trace: run the files as they were, and their recorded calls"""
    if seed is not None and seed < 0:
        raise WrongUsage(f"a seed is a number from 0 on, not {seed}")
    if not paths:
        raise WrongUsage("what shall be checked? write, for example: mugraph check src")
    places = [Path(path) for path in paths]
    for place in places:
        if not place.exists():
            raise WrongUsage(f"{place} does not exist")
    found = list(modules_in(places))
    unread = [(module, record) for module, record in found if isinstance(record, str)]
    modules = [(m, record) for m, record in found if not isinstance(record, str)]
    checked = check_all(modules, _here(), seed)
    calls: Sequence[Lowerings] = [[(kernel.graph.name, _NOT_TRACED) for kernel in one.kernels] for one in checked]
    if trace:
        calls = calls_again(checked, dict(modules))
        checked = [with_calls(one, lowerings) for one, lowerings in zip(checked, calls, strict=True)]
    if as_json:
        regions = [_checked(one, lowerings) for one, lowerings in zip(checked, calls, strict=True)]
        print_json({"seed": seed, "regions": regions + [_unread(module, why) for module, why in unread]})
    else:
        _print(checked, calls if trace else [[] for _ in checked], unread)
        if checked and not trace:
            print(f"Of the recorded calls, {_NOT_TRACED.note}.")
        if checked and seed is None:
            print("Random inputs are those of the first verification, by seeds in the modules; --seed N draws others.")
        elif checked:
            print(f"Random inputs are those of seed {seed}.")
    return FAILED if unread or any(one.problems for one in checked) else OK


def _here() -> Here:
    """Without a GPU PyTorch is not imported: that would take longer than the check."""
    device = detect()
    return Here(device.name if device.kind == "gpu" else None, versions())


def _checked(one: Checked, calls: Lowerings) -> dict[str, object]:
    return {
        "file": str(one.file),
        "module": str(one.module),
        "function": one.function,
        "passed": not one.problems,
        "problems": list(one.problems),
        "seeds": list(one.seeds),
        "lowering": [{"kernel": kernel, "passed": found.passed, "note": found.note} for kernel, found in calls],
    }


def _unread(module: Path, why: str) -> dict[str, object]:
    return {
        "file": None,
        "module": str(module),
        "function": None,
        "passed": False,
        "problems": [why],
        "seeds": [],
        "lowering": [],
    }


def _print(checked: Sequence[Checked], calls: Sequence[Lowerings], unread: Sequence[tuple[Path, str]]) -> None:
    for one, lowerings in zip(checked, calls, strict=True):
        state = "NOT as it was verified" if one.problems else "verified again"
        print(f"{_short(one.file)}: {one.function}: {state}")
        for problem in one.problems:
            print(f"  {problem}")
        for kernel, found in lowerings:
            if found.passed is not False:  # which is among the problems
                print(f"  {kernel}: {found.words}")
    for module, why in unread:
        print(f"{_short(module)}: {why}")
    if not checked and not unread:
        print("no generated kernel module there: nothing to check")
