"""Kernel modules checked side by side, on the processors that are there."""

from __future__ import annotations

import sys
from collections.abc import Sequence
from concurrent.futures import Future, ProcessPoolExecutor
from concurrent.futures.process import BrokenProcessPool
from multiprocessing import get_context
from pathlib import Path

from mugraph.checking.again import Checked, Here, check_again
from mugraph.edit.source.record import Record
from mugraph.sharing import processors

Module = tuple[Path, Record]


def check_all(modules: Sequence[Module], here: Here, seed: int | None = None) -> list[Checked]:
    """Of each region of each module, in the order of the modules. seed: as check_again takes it"""
    workers = min(processors() if _forks_well() else 1, len(modules))
    if workers < 2:
        return [one for module, record in modules for one in check_again(module, record, here, seed)]
    # The largest first: they have the most kernels, and none is left for the end.
    order = sorted(range(len(modules)), key=lambda at: -modules[at][0].stat().st_size)
    with ProcessPoolExecutor(workers, get_context("fork")) as pool:
        asked = {at: pool.submit(check_again, *modules[at], here, seed) for at in order}
        return [one for at, module in enumerate(modules) for one in _answer(asked[at], module, here, seed)]


def _answer(asked: Future[list[Checked]], module: Module, here: Here, seed: int | None) -> list[Checked]:
    """Checked here, where the process that was to do it has ended."""
    try:
        return asked.result()
    except BrokenProcessPool:
        return check_again(*module, here, seed)


def _forks_well() -> bool:
    return sys.platform.startswith("linux")
