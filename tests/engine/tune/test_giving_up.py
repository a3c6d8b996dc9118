"""Processes that serve one search after the other: what is given up in one of them costs the next as little as can
be, and nothing of it is left on the device."""

from __future__ import annotations

import contextlib
import sys
import threading
import time
from collections.abc import Iterator
from functools import partial
from pathlib import Path

import psutil
import pytest
from mugraph.giving_up import WORDS, GivingUp
from mugraph.tune.compile_pool import CompilePool
from mugraph.tune.measure import Measurer, Refused
from mugraph.tune.messages import Applied, Failure, InputSpec, Ok, Prepare, Replay, Subject, Timed
from mugraph.tune.peers import Peers
from mugraph.tune.process import ChildProcess
from mugraph.tune.statistics import Summary

FAKE = (sys.executable, str(Path(__file__).with_name("fake_child.py")))
INPUTS = (InputSpec((4,), (1,), "f16"),)


def subject(name: str, source: str = "") -> Subject:
    return Subject(name, source, "f")


@pytest.fixture
def giving_up() -> GivingUp:
    return GivingUp()


@contextlib.contextmanager
def soon(giving_up: GivingUp, after_s: float = 0.3) -> Iterator[None]:
    """What is asked inside is given up from another thread, a little later; and no more after it."""
    timer = threading.Timer(after_s, giving_up.begin)
    timer.start()
    yield
    timer.join()
    giving_up.end()


def test_what_works_is_killed_and_what_is_idle_stays(giving_up: GivingUp):
    with ChildProcess(FAKE, giving_up=giving_up) as child, ChildProcess(FAKE, giving_up=giving_up) as idle:
        child.start()
        idle.start()
        busy, waiting = child.pid, idle.pid
        with soon(giving_up):
            assert child.ask(Prepare(subject("hang"), INPUTS), 60) == Failure(WORDS, fatal=True)
            assert idle.ask(Prepare(subject("a_1"), INPUTS), 60) == Failure(WORDS, fatal=True), "nothing new is asked"
            assert child.pid is None, "nor is anything started"
        assert child.ask(Prepare(subject("a_1"), INPUTS), 60) == Ok()
        assert idle.ask(Replay(("a_1",), 1), 60) == Failure("not prepared: {'a_1'}")
        assert child.pid != busy
        assert idle.pid == waiting


def test_what_still_starts_goes_on(giving_up: GivingUp, tmp_path: Path):
    """It takes seconds to import what it needs, and the next search needs it as well."""
    gate = tmp_path / "gate"
    with ChildProcess((*FAKE, "after", str(gate)), giving_up=giving_up) as child:
        with soon(giving_up):
            assert child.ask(Prepare(subject("a_1"), INPUTS), 60) == Failure(WORDS, fatal=True)
        starting = child.pid
        assert starting is not None
        gate.touch()
        assert child.ask(Prepare(subject("b_1"), INPUTS), 60) == Ok()
        assert child.ask(Replay(("b_1",), 1), 60) == Timed({"b_1": (1.0,)}), "each question has its own answer"
        assert child.pid == starting


def test_a_pool_starts_nothing_again_and_knows_nothing_of_what_it_gave_up(giving_up: GivingUp, tmp_path: Path):
    gate = tmp_path / "gate"
    started: list[ChildProcess] = []

    def start() -> ChildProcess:
        started.append(ChildProcess((*FAKE, "after", str(gate)), giving_up=giving_up))
        return started[-1]

    items = [(subject(f"a_{number}"), INPUTS) for number in range(8)]
    with CompilePool(start, workers=2) as pool:
        pool.begin()
        pids = pool.pids
        with soon(giving_up):
            assert pool.compile(items) == [WORDS] * 8
        gate.touch()
        assert pool.compile(items) == [None] * 8
        assert pool.pids == pids
        assert len(pids) == len(started) == 2
    assert pool.pids == []


def test_a_pool_that_has_forgotten_asks_again(tmp_path: Path):
    once = (subject("once", str(tmp_path)), INPUTS)
    bad = (subject("bad"), INPUTS)
    with CompilePool(lambda: ChildProcess(FAKE), workers=1) as pool:
        assert pool.compile([once, bad])[1] == "no such instruction"
        assert pool.compile([once]) == [None]
        pids = pool.pids
        (tmp_path / "once").unlink()
        assert pool.compile([once]) == [None], "it is known"
        pool.forget()
        assert pool.compile([once]) != [None]
        assert pids


def test_nothing_lies_on_the_device_after_a_release():
    with Measurer(lambda: ChildProcess(FAKE)) as measurer:
        measurer.release()
        assert measurer.pid is None, "nothing is started for it"
        assert measurer.keep(subject("a_1"), INPUTS)
        pid = measurer.pid
        measurer.release()
        assert measurer._ask(Replay(("a_1",), 1), 60) == Failure("not prepared: {'a_1'}")
        assert measurer.measure_kernel(subject("a_1"), INPUTS, 3) == Summary(1.0, 0.0, 3)
        assert measurer.pid == pid


def test_a_release_does_not_wait_for_what_still_starts(tmp_path: Path):
    with Measurer(lambda: ChildProcess((*FAKE, "after", str(tmp_path / "gate")))) as measurer:
        measurer.begin()
        pid = measurer.pid
        measurer.release()
        assert measurer.pid == pid


def test_peers_under_way_are_given_up_by_a_release():
    """Whoever released them while their thread waited for an answer would have been given that one."""
    with contextlib.closing(Peers(Measurer(lambda: ChildProcess(FAKE)), patience_s=60)) as peers:
        peers.begin([subject("hang_1"), subject("other_2")], INPUTS)
        while peers.measurer.pid is None:
            time.sleep(0.01)
        peers.release()
        assert peers.done(0)
        assert peers.measurer.pid is None
        peers.renew(begin=False)
        assert peers.measurer.pid is None
        peers.renew()
        begun = peers.measurer.pid
        assert begun is not None, "so that it is ready for the next"
        peers.begin([subject("next_3")], INPUTS)
        assert peers.done(30)
        assert peers.measurer.compare([subject("next_3")], INPUTS)["next_3"] == Summary(3.0, 0.0, 40)
        assert peers.measurer.pid == begun


def test_peers_of_a_cancelled_search_end_at_once(giving_up: GivingUp):
    with contextlib.closing(Peers(Measurer(partial(ChildProcess, FAKE, giving_up=giving_up)), patience_s=60)) as peers:
        peers.begin([subject("hang_1"), subject("hang_2")], INPUTS)
        while not peers.measurer._child.answers:
            time.sleep(0.01)
        giving_up.begin()
        assert peers.done(30)
        giving_up.end()
        peers.release()
        assert peers.measurer.pid is None, "none was begun for the second"


@pytest.mark.parametrize("text", ["text", "refuse"])
def test_the_users_code_runs_in_a_process_that_has_run_none_before(text: str, tmp_path: Path):
    """A module of theirs that was imported for one search has changed on the disk by the next. What it has started
    ends with the process."""
    applied = Applied("model.py", text, "model_mugraph", "", "f", "f_fits", "f", {})
    with contextlib.closing(Peers(Measurer(lambda: ChildProcess(FAKE)))) as peers:
        measurer = peers.measurer
        peers.begin([subject("eager_9")], INPUTS)
        assert peers.done(30)
        first = measurer.pid
        measurer.compare([subject("eager_9"), subject("ours_2")], INPUTS)
        peers.release()
        peers.renew()
        assert measurer.pid == first, "only what is ours has run there"
        left = tmp_path / "pid"
        called = measurer.compare_called(
            [subject("ours_2"), subject("nurse_3", str(left))], INPUTS, "ours_2", applied, rounds=3
        )
        assert (called.not_entered is None) == (text == "text")
        assert measurer.pid == first
        started = psutil.Process(int(left.read_text()))
        peers.release()
        peers.renew()
        assert measurer.pid not in (None, first)
        assert psutil.wait_procs([started], 10)[1] == []
        assert measurer.measure_kernel(subject("a_1"), INPUTS, 3) == Summary(1.0, 0.0, 3)
        second = measurer.pid
        peers.release()
        peers.renew()
        assert measurer.pid == second, "once is enough"


def test_a_question_without_anybody_who_gives_up_waits_for_its_time():
    with ChildProcess(FAKE, giving_up=GivingUp()) as child:
        child.start()
        assert child.ask(Prepare(subject("hang"), INPUTS), 0.3) == Failure("no answer within 0 s", fatal=True)
    with Measurer(lambda: ChildProcess(FAKE, giving_up=GivingUp())) as measurer:
        assert isinstance(measurer.measure_kernel(subject("bad"), INPUTS), Refused)
