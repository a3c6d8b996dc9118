"""The measuring process may hang, die or be poisoned; the caller is told and goes on with a new one."""

from __future__ import annotations

import sys
from pathlib import Path

import pytest
from mugraph.tune.compile_pool import CompilePool
from mugraph.tune.measure import Measurer, Refused
from mugraph.tune.messages import Failure, Hello, InputSpec, Ok, Prepare, Replay, Subject, Timed
from mugraph.tune.process import ChildProcess, Unavailable
from mugraph.tune.statistics import Summary
from mugraph.tune.tuner import against_peers

FAKE = (sys.executable, str(Path(__file__).with_name("fake_child.py")))
INPUTS = (InputSpec((4,), (1,), "f16"),)


def subject(name: str) -> Subject:
    return Subject(name, "", "f")


def prepare(name: str) -> Prepare:
    return Prepare(subject(name), INPUTS)


@pytest.fixture
def child():
    with ChildProcess(FAKE) as process:
        yield process


def test_answers_in_turn(child: ChildProcess):
    assert child.start() == Hello("Fake GPU", {"torch": "0"}, 1 << 20)
    assert child.ask(prepare("a_3"), 10) == Ok()
    assert child.ask(Replay(("a_3",), 2), 10) == Timed({"a_3": (3.0, 3.0)})
    assert child.restarts == 0


def test_hanging_kernel_is_killed(child: ChildProcess):
    child.start()
    reply = child.ask(prepare("hang"), 0.3)
    assert reply == Failure("no answer within 0 s", fatal=True)
    assert child.ask(prepare("a_1"), 10) == Ok()
    assert child.restarts == 1


def test_death_is_told_with_its_last_words(child: ChildProcess):
    reply = child.ask(prepare("die"), 10)
    assert isinstance(reply, Failure)
    assert reply.fatal
    assert "status 11" in reply.reason
    assert "Segmentation fault" in reply.reason
    assert child.ask(prepare("a_1"), 10) == Ok()


def test_poisoned_context_is_not_used_again(child: ChildProcess):
    child.ask(prepare("a_1"), 10)
    assert child.ask(prepare("poison"), 10) == Failure("CUDA error: an illegal memory access was encountered", True)
    reply = child.ask(Replay(("a_1",), 1), 10)  # a new process, which has nothing prepared
    assert isinstance(reply, Failure)
    assert "not prepared" in reply.reason


def test_plain_failure_keeps_the_process(child: ChildProcess):
    child.ask(prepare("a_1"), 10)
    assert child.ask(prepare("bad"), 10) == Failure("OutOfResources: shared memory")
    assert child.ask(Replay(("a_1",), 1), 10) == Timed({"a_1": (1.0,)})


def test_no_device_is_one_sentence():
    with ChildProcess((*FAKE, "refuse")) as child:
        with pytest.raises(Unavailable, match="no CUDA device"):
            child.start()
        reply = child.ask(prepare("a_1"), 10)
        assert isinstance(reply, Failure)
        assert reply.fatal


def test_the_real_child_refuses_without_a_gpu(monkeypatch: pytest.MonkeyPatch):
    with ChildProcess(environment={"CUDA_VISIBLE_DEVICES": ""}) as child, pytest.raises(Unavailable, match="no CUDA"):
        child.start()


def test_comparison_survives_a_subject_that_breaks_the_process():
    with Measurer(lambda: ChildProcess(FAKE)) as measurer:
        found = measurer.compare([subject(n) for n in ("a_5", "poison", "b_2", "bad", "die")], INPUTS, rounds=3)
    assert found["a_5"] == Summary(5.0, 0.0, 3)
    assert found["b_2"] == Summary(2.0, 0.0, 3)
    assert {name for name, result in found.items() if isinstance(result, Refused)} == {"poison", "bad", "die"}


def test_compile_pool_reports_in_order():
    with CompilePool(lambda: ChildProcess(FAKE), workers=2) as pool:
        told: list[int] = []
        reasons = pool.compile([(subject(n), INPUTS) for n in ("a", "bad", "c")], done=told.append)
    assert reasons == [None, "no such instruction", None]
    assert sorted(told) == [1, 2, 3]


def peers(ours: str) -> tuple[Subject, Subject]:
    return subject(ours), subject("eager")


def test_against_peers_refuses_a_different_result(monkeypatch: pytest.MonkeyPatch):
    monkeypatch.setattr("mugraph.tune.tuner.PEERS", {"eager_9": "none", "torch.compile_7": "default"})
    with Measurer(lambda: ChildProcess(FAKE)) as measurer:
        wrong = against_peers(*peers("wrong_1"), INPUTS, measurer)
        right = against_peers(*peers("ours_2"), INPUTS, measurer)
        slow = against_peers(*peers("ours_8"), INPUTS, measurer)
    assert wrong.us is None
    assert wrong.speedup == 1.0
    assert wrong.reason is not None
    assert "differs from the original" in wrong.reason
    assert right.us == 2.0
    assert right.best_peer == "torch.compile_7"
    assert right.speedup == 3.5
    assert right.device == "Fake GPU"
    assert slow.speedup == 1.0
