"""A float test that is given up: its process stays if it still starts, and is another if it was at work."""

from __future__ import annotations

import threading

import pytest
from mugraph.giving_up import WORDS, GivingUp
from mugraph.verification.float_test import FloatTester

from tests.engine.verification.float_programs import NORM, norm

HANGS = NORM.replace("    return z", "    import time\n    time.sleep(600)")
WRONG = NORM.replace("+ 1e-6", "+ 1e-1")


@pytest.mark.usefixtures("whole_process")
def test_a_fresh_process_starts_on_and_one_at_work_is_killed() -> None:
    giving_up = GivingUp()
    with FloatTester(timeout_s=60, giving_up=giving_up) as tester:

        def given_up(text: str, after_s: float) -> None:
            timer = threading.Timer(after_s, giving_up.begin)
            timer.start()
            assert norm(tester, text).reason == WORDS
            assert norm(tester, text).reason == WORDS, "nothing new is asked"
            timer.join()

        given_up(WRONG, 0.2)  # it imports PyTorch for longer than that
        fresh = tester.pid
        assert fresh is not None
        giving_up.end()
        assert norm(tester, NORM).passed, "the answer is that to this question"
        assert not norm(tester, WRONG).passed
        assert tester.pid == fresh

        given_up(HANGS, 0.5)
        assert tester.pid is None
        giving_up.end()
        assert norm(tester, NORM).passed
        assert tester.pid not in (None, fresh)


def test_what_was_given_up_may_have_been_the_end_of_the_process(forks: None) -> None:
    """A fork is at work at once, and does not know that it is fresh."""
    giving_up = GivingUp()
    dies = NORM.replace("    return z", "    import os, time\n    time.sleep(1)\n    os.kill(os.getpid(), 11)")
    with FloatTester(timeout_s=60, giving_up=giving_up) as tester:
        timer = threading.Timer(0.2, giving_up.begin)
        timer.start()
        assert norm(tester, dies).reason == WORDS
        timer.join()
        giving_up.end()
        assert norm(tester, NORM).passed


def test_a_release_costs_nothing_but_memory(forks: None) -> None:
    with FloatTester(timeout_s=60) as tester:
        tester.release()
        assert tester.pid is None, "nothing is started for it"
        assert norm(tester, NORM).passed
        pid = tester.pid
        tester.release()
        assert norm(tester, NORM).passed
        assert tester.pid == pid
