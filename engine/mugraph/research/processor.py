"""Seconds of the processor that a process has used, with all that it started. Unlike those on the clock they are much
the same on a machine that does other things as well. Of Linux."""

from __future__ import annotations

import os
import resource
from pathlib import Path


def processor_s() -> float:
    """Of this process, of those that it has waited for, and of those of its own that still run."""
    own, ended = (resource.getrusage(who) for who in (resource.RUSAGE_SELF, resource.RUSAGE_CHILDREN))
    used = own.ru_utime + own.ru_stime + ended.ru_utime + ended.ru_stime
    return used + sum(ticks for _, ticks in _below(os.getpid())) / os.sysconf("SC_CLK_TCK")


def _below(process: int) -> list[tuple[int, int]]:
    """Processes that were started from this one, and the ticks of each: those of what it has waited for included."""
    every = {number: known for number in _numbers() if (known := _known(number)) is not None}
    found: list[tuple[int, int]] = []
    looked = [process]
    while looked:
        above = looked.pop()
        below = [(number, ticks) for number, (parent, ticks) in every.items() if parent == above]
        found += below
        looked += [number for number, _ in below]
    return found


def _numbers() -> list[int]:
    return [int(one.name) for one in Path("/proc").iterdir() if one.name.isdigit()]


def _known(number: int) -> tuple[int, int] | None:
    """The parent, and the ticks; None of one that has just ended."""
    try:
        said = Path("/proc", str(number), "stat").read_text()
    except OSError:
        return None
    fields = said.rpartition(")")[2].split()  # from the third on (proc(5)); what is in brackets may hold anything
    return int(fields[1]), sum(int(one) for one in fields[11:15])
