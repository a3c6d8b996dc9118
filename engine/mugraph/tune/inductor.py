"""torch.compile's own processes, ready before something is compiled. Child process only.

max-autotune compiles dozens of kernels for one product. PyTorch has processes for that, which it starts with the first
compilation; until they are up, some ten seconds later, threads of one process do it, a kernel at a time. What they have
compiled is looked up in Triton's cache by the version of the assembler, among others. The processes take the ptxas that
PyTorch brings, their parent Triton's own, unless it has happened to compile something itself before: then everything is
compiled twice, the second time one after the other.
"""

from __future__ import annotations

import contextlib
import logging
import os
import time
from collections.abc import Callable, Generator
from typing import Any

import torch

_log = logging.getLogger("mugraph.tune")

_READY_S = 20.0
"""That PyTorch's processes may take to start. They import PyTorch; where they take longer, threads compile."""
_LOOK_S = 0.05
_PTXAS = "TRITON_PTXAS_PATH"


def begin() -> Callable[[], bool]:
    """Start PyTorch's processes, which import PyTorch for seconds. Answers whether they are up, or will never be."""
    try:
        from torch._inductor import async_compile  # of PyTorch's own making: it may be another in a later version

        if async_compile.get_compile_threads() <= 1:  # as the user has set it, or on Windows
            return lambda: True
        with assembler():
            async_compile.AsyncCompile.use_process_pool()
        return lambda: bool(async_compile.AsyncCompile.use_process_pool())
    except Exception as error:
        _log.info("PyTorch's processes could not be started early: %s: %s", type(error).__name__, error)
        return lambda: True


def make_ready(up: Callable[[], bool]) -> None:
    """Import PyTorch's compiler, and wait for what was begun. Never raises: what could not be made ready is so at the
    first compilation."""
    began = time.monotonic()
    try:
        with assembler(), torch.no_grad():
            compiled: Any = torch.compile(_nothing_much)  # pyright: ignore[reportUnknownMemberType]
            compiled(torch.zeros(64, device="cuda"))
        while not up() and time.monotonic() - began < _READY_S:
            time.sleep(_LOOK_S)
    except Exception as error:
        _log.info("torch.compile could not be made ready: %s: %s", type(error).__name__, error)


def _nothing_much(x: torch.Tensor) -> torch.Tensor:
    return x * 2 + 1


@contextlib.contextmanager
def assembler() -> Generator[None]:
    """Within, PyTorch's own ptxas assembles, as it does in PyTorch's processes. Outside, Triton's: as for generated
    kernels in a program that compiles nothing else, and in the processes that have compiled them ahead."""
    before = os.environ.get(_PTXAS)
    path = _of_pytorch() or before
    if path == before:
        yield
        return
    _use(path)
    try:
        yield
    finally:
        _use(before)


_found: list[str | None] = []


def _of_pytorch() -> str | None:
    """The ptxas that PyTorch's processes take; None where it brings none, or the user has chosen one."""
    if not _found:
        before = os.environ.get(_PTXAS)
        try:
            from torch._inductor.runtime import compile_tasks

            choose: Any = vars(compile_tasks).get("_set_triton_ptxas_path", lambda: None)
            choose()  # does something once in a process: from here on PyTorch leaves it alone
        except Exception as error:
            _log.info("which ptxas PyTorch takes is not known: %s: %s", type(error).__name__, error)
        _found.append(os.environ.get(_PTXAS))
        _use(before)
    return _found[0]


def _use(path: str | None) -> None:
    if path is None:
        os.environ.pop(_PTXAS, None)
    else:
        os.environ[_PTXAS] = path
    with contextlib.suppress(ImportError, AttributeError):
        from triton.backends.nvidia import compiler

        version: Any = compiler.get_ptxas_version
        version.cache_clear()  # what it has read once is a part of the keys of all that it compiles
