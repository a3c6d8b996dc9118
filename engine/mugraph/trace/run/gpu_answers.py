"""What a traced program is told that asks where a tensor is: on the GPU, where its regions run, though it is traced on
the CPU.

A program that does not come to its end so, as one that then calls a kernel of its own, is told the CPU in another run.
What it asks is then part of no region.
"""

from __future__ import annotations

from collections.abc import Generator
from contextlib import contextmanager
from dataclasses import dataclass

GPU = "cuda"
IS_ON = {"is_cuda": True, "is_cpu": False}
"""What a tensor on the GPU says of its device."""
TOLD = "was told that a tensor is on the GPU"
"""The name of what happens on the tape. A region that holds it is for tensors that are there."""


@dataclass
class Answers:
    """gpu: whether the program is told the GPU. asked: whether it was told anything that differs on the CPU"""

    gpu: bool = False
    asked: bool = False


ANSWERS = Answers()


@contextmanager
def answering(gpu: bool) -> Generator[None]:
    before = ANSWERS.gpu
    ANSWERS.gpu, ANSWERS.asked = gpu, False
    try:
        yield
    finally:
        ANSWERS.gpu = before
