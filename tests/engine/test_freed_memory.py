"""Freed memory serves again, and goes back to the system when it is asked to."""

from __future__ import annotations

import subprocess
import sys

import pytest

pytestmark = pytest.mark.skipif(sys.platform != "linux", reason="glibc's")

BLOCK = 64 << 20
FAULTS = """\
import resource
from mugraph.freed_memory import keep_freed_memory

{kept}
def faults():
    before = resource.getrusage(resource.RUSAGE_SELF).ru_minflt
    bytearray(b"x") * {block}
    return resource.getrusage(resource.RUSAGE_SELF).ru_minflt - before

faults()
print(faults())
"""
RESIDENT = """\
from mugraph import freed_memory

freed_memory.keep_freed_memory()
held = bytearray(b"x") * {block}
last = bytearray(b"y")
del held
freed_memory.give_back({above})
print(freed_memory._resident_bytes())
"""


def said(script: str) -> int:
    return int(subprocess.run([sys.executable, "-c", script], check=True, capture_output=True, text=True).stdout)


def test_a_second_block_of_its_size_brings_no_new_pages() -> None:
    assert said(FAULTS.format(kept="keep_freed_memory()", block=BLOCK)) < 100


def test_by_itself_it_would() -> None:
    """Else the module is of no use here."""
    assert said(FAULTS.format(kept="", block=BLOCK)) > 16


@pytest.mark.parametrize(("above", "is_kept"), [(0, False), (1 << 40, True)])
def test_it_goes_back_where_the_process_holds_much(above: int, is_kept: bool) -> None:
    assert (said(RESIDENT.format(block=BLOCK, above=above)) > BLOCK) == is_kept
