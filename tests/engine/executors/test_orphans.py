"""A worker whose parent is killed ends, though its input stays open and whatever it works on."""

from __future__ import annotations

import os
import subprocess
import sys
import time

import psutil
from mugraph.executors.desks import Done
from mugraph.executors.requests import Do
from mugraph.pickled import read_frame, write_frame
from mugraph.search.kernel_graphs.parts import PartTask
from mugraph.search.topologies.limits import Limits
from mugraph.targets import TARGETS

from tests.engine.search import workloads

PARENT = """\
import subprocess, sys
child = subprocess.Popen([sys.executable, "-P", "-m", "mugraph.executors.child"])
print(child.pid, file=sys.stderr, flush=True)
child.wait()
"""
PATIENCE_S = 60


def ended(pid: int) -> bool:
    try:
        return psutil.Process(pid).status() == psutil.STATUS_ZOMBIE
    except psutil.NoSuchProcess:
        return True


TESTER = """\
import subprocess, sys
child = subprocess.Popen([sys.executable, "-P", "-m", "mugraph.verification.float_child", "interpreter"])
print(child.pid, file=sys.stderr, flush=True)
child.wait()
"""


def test_a_tester_whose_parent_was_killed_ends() -> None:
    """Its parent may be a worker that was given up, in the middle of a test."""
    theirs, ours = os.pipe()
    parent = subprocess.Popen(
        [sys.executable, "-c", TESTER], stdin=theirs, stdout=subprocess.PIPE, stderr=subprocess.PIPE
    )
    assert parent.stdout is not None
    assert parent.stderr is not None
    pid = int(parent.stderr.readline())
    until = time.monotonic() + 2 * PATIENCE_S
    while psutil.Process(pid).num_threads() < 2 and time.monotonic() < until:  # it is importing
        time.sleep(0.1)
    time.sleep(1.0)
    parent.kill()
    parent.wait()
    while not ended(pid) and time.monotonic() < until:
        time.sleep(0.1)
    os.close(ours)
    os.close(theirs)
    assert ended(pid)


def test_an_orphan_ends() -> None:
    theirs, ours = os.pipe()
    parent = subprocess.Popen(
        [sys.executable, "-c", PARENT], stdin=theirs, stdout=subprocess.PIPE, stderr=subprocess.PIPE
    )
    assert parent.stdout is not None
    assert parent.stderr is not None
    pid = int(parent.stderr.readline())
    with os.fdopen(ours, "wb") as requests:
        write_frame(requests, Do(PartTask(workloads.lora(), TARGETS["h200"], Limits(max_topologies=1))))
        assert isinstance(read_frame(parent.stdout), Done)
        assert not ended(pid)
        parent.kill()
        parent.wait()
        until = time.monotonic() + PATIENCE_S
        while not ended(pid) and time.monotonic() < until:
            time.sleep(0.1)
        assert ended(pid)
    os.close(theirs)
