"""Standard input and output taken away from everything but the protocol, before anything else is imported."""

from __future__ import annotations

import os
import sys


def claim() -> tuple[int, int]:
    """Descriptors to read and to write. Afterwards prints of any kind, from Python or C, here or in a child, go to
    standard error, and reading standard input finds nothing."""
    source, sink = os.dup(0), os.dup(1)  # not inherited by children
    nothing = os.open(os.devnull, os.O_RDONLY)
    os.dup2(nothing, 0)
    os.close(nothing)
    os.dup2(2, 1)
    sys.stdin, sys.stdout = open(0, closefd=False), sys.stderr  # noqa: SIM115 - they live as long as the process
    return source, sink
