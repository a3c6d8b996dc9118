"""Threads of PyTorch in the process that tests kernels on a processor.

Products of small tensors are done before a second thread has begun, which then waits, and takes a processor from
others for it: two threads need 100 times the processor's time of one for 64 x 64 matrices where the machine is busy,
and as much as one for 512 x 512.
"""

from __future__ import annotations

from collections.abc import Generator
from contextlib import contextmanager

import torch

from mugraph.ir.program import TensorProgram
from mugraph.verification.work import work

_SMALL = 1e7
"""Work of a program, up to which one thread is not slower: a product of 512 x 512 matrices is 0.5e7."""


@contextmanager
def threads_for(program: TensorProgram) -> Generator[None]:
    """One for a small program, else as many as before."""
    before = torch.get_num_threads()
    if work(program, [], program.sizes) <= _SMALL:
        torch.set_num_threads(1)
    try:
        yield
    finally:
        torch.set_num_threads(before)
