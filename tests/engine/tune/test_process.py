"""The measuring process may hang, die or be poisoned; the caller is told and goes on with a new one."""

from __future__ import annotations

import contextlib
import subprocess
import sys
import time
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path
from typing import Any

import psutil
import pytest
import torch
from mugraph.tune.against import WITHOUT_GUARDS, against_peers, peer_subjects
from mugraph.tune.compile_pool import CompilePool
from mugraph.tune.measure import Measurer, Refused
from mugraph.tune.messages import (
    REPLAYS,
    Agreed,
    Applied,
    Failure,
    Hello,
    InputSpec,
    Ok,
    Prepare,
    Replay,
    Subject,
    Timed,
)
from mugraph.tune.peers import Peers
from mugraph.tune.process import ChildProcess, Unavailable
from mugraph.tune.statistics import Summary
from mugraph.tune.subjects import load

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


@pytest.mark.skipif(sys.platform == "win32", reason="processes have no groups there")
def test_what_a_process_has_started_ends_with_it(child: ChildProcess, tmp_path: Path):
    """PyTorch's processes that compile, say."""
    noted = tmp_path / "pid"
    assert child.ask(Prepare(Subject("nurse_1", str(noted), "f"), INPUTS), 10) == Ok()
    child.kill()
    pid = int(noted.read_text())
    assert any(_ended(pid) for _ in range(1000))


def _ended(pid: int) -> bool:
    """It may take a moment, and its new parent another one to hear of it."""
    time.sleep(0.01)
    listed = subprocess.run(["ps", "-o", "stat=", "-p", str(pid)], capture_output=True, text=True, check=False)
    return listed.stdout.strip()[:1] in ("", "Z")


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


def test_what_an_earlier_kernel_has_broken_is_asked_once_more(tmp_path: Path):
    """CUDA tells the next who comes, who may be innocent."""
    late = Subject("late_3", str(tmp_path), "f")
    with Measurer(lambda: ChildProcess(FAKE)) as measurer:
        assert measurer.keep(late, INPUTS)
        assert measurer.agree(subject("a_1"), subject("b_1"), INPUTS) == Agreed(True, 1e-4, 1e-2)
    assert (tmp_path / "late").exists()


def test_times_are_taken_once_more_without_what_replays_graphs_of_its_own(tmp_path: Path):
    replaying = Subject("late_3", str(tmp_path), "f", REPLAYS)
    with Measurer(lambda: ChildProcess(FAKE)) as measurer:
        found = measurer.compare_called([subject("a_5"), replaying, subject("b_2")], INPUTS, "b_2", None, rounds=3)
    assert found.device["a_5"] == Summary(5.0, 0.0, 3)
    assert found.device["b_2"] == Summary(2.0, 0.0, 3)
    assert found.device["late_3"] == Refused("CUDA error: unspecified launch failure")
    assert set(found.called) == {"a_5", "b_2"}


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


def test_compile_pool_asks_once_and_again_only_where_a_process_has_died(tmp_path: Path):
    asked: list[str] = []

    class Noting(ChildProcess):
        def ask(self, request: Any, timeout_s: float) -> Any:
            asked.append(request.subject.name)
            return super().ask(request, timeout_s)

    dies = Subject("once", str(tmp_path), "f")
    items = [(one, INPUTS) for one in (subject("a"), dies, subject("bad"), subject("a"))]
    with CompilePool(lambda: Noting(FAKE), workers=1) as pool:
        first, second = pool.compile(items), pool.compile(items)
    assert asked == ["a", "once", "bad", "once"]
    assert first[0] is first[3] is None
    assert first[1] is not None
    assert "ended with status" in first[1]
    assert second == [None, None, "no such instruction", None]


def test_what_the_compile_pool_was_asked_for_ahead_is_compiled_once_while_others_wait_for_theirs() -> None:
    asked: list[str] = []

    class Noting(ChildProcess):
        def ask(self, request: Any, timeout_s: float) -> Any:
            asked.append(request.subject.name)
            return super().ask(request, timeout_s)

    with CompilePool(lambda: Noting(FAKE), workers=2) as pool:
        ahead = [(subject(f"ahead{number}"), INPUTS) for number in range(6)]
        futures = pool.ask(ahead)
        assert pool.compile([(subject("now"), INPUTS), ahead[0]]) == [None, None]
        assert [future.result(30) for future in futures] == [None] * 6
        assert pool.compile(ahead) == [None] * 6
    assert sorted(asked) == [*(f"ahead{number}" for number in range(6)), "now"]


def test_the_compile_pool_ends_with_what_it_has_not_compiled() -> None:
    with CompilePool(lambda: ChildProcess(FAKE), workers=1) as pool:
        pool.compile([(subject("a"), INPUTS)])
        (pid,) = pool.pids
        began = time.monotonic()
        pool.ask([(subject(f"slow{number}"), INPUTS) for number in range(1000)])
    assert time.monotonic() - began < 30
    assert pool.pids == []
    assert not psutil.pid_exists(pid)


def peers(ours: str) -> tuple[Subject, Subject]:
    return subject(ours), subject("eager")


APPLIED = Applied("model.py", "text", "model_mugraph", "", "f", "f_fits", "f", {})


def named_peers(monkeypatch: pytest.MonkeyPatch, **peers: str) -> None:
    monkeypatch.setattr("mugraph.tune.against.PEERS", peers)


def test_against_peers_refuses_a_different_result(monkeypatch: pytest.MonkeyPatch):
    named_peers(monkeypatch, eager_9="none", compiled_7="default")
    with Measurer(lambda: ChildProcess(FAKE)) as measurer:
        wrong = against_peers(*peers("wrong_1"), INPUTS, measurer)
        right = against_peers(*peers("ours_2"), INPUTS, measurer)
        slow = against_peers(*peers("ours_8"), INPUTS, measurer)
    assert wrong.on_device.us is None
    assert wrong.on_device.gain is None
    assert wrong.reason is not None
    assert "differs from the original" in wrong.reason
    assert right.on_device.us == 2.0
    assert right.on_device.best_peer == "compiled_7"
    assert (right.on_device.gain, right.on_device.best_gain) == (4.5, 3.5)
    assert right.device == "Fake GPU"
    assert slow.on_device.gain == pytest.approx(9 / 8)
    assert slow.on_device.best_gain == pytest.approx(7 / 8)


def test_what_a_program_calls_is_timed_with_its_guards(monkeypatch: pytest.MonkeyPatch):
    named_peers(monkeypatch, eager_9="none", compiled_7="default")
    with Measurer(lambda: ChildProcess(FAKE)) as measurer:
        found = against_peers(*peers("ours_2"), INPUTS, measurer, applied=APPLIED)
        refused = against_peers(*peers("ours_2"), INPUTS, measurer, applied=replace(APPLIED, text="refuse"))
        died = against_peers(*peers("ours_2"), INPUTS, measurer, applied=replace(APPLIED, text="die"))
        never = against_peers(*peers("ours_2"), INPUTS, measurer, applied=replace(APPLIED, text="never"))
    assert found.as_called.us == 25.0
    assert found.as_called.peers == {"eager_9": 90.0, "compiled_7": 70.0}
    assert found.as_called.gain == pytest.approx(90 / 25)
    assert WITHOUT_GUARDS not in found.called_method
    for one, why in ((refused, "the guard refuses the call"), (died, "ended with status")):
        assert one.on_device == found.on_device
        assert one.as_called.us == 20.0
        assert WITHOUT_GUARDS in one.called_method
        assert why in one.called_method
    assert refused.reason is died.reason is None
    assert never.reason == "NotCalled: the guard of model refuses the call that it was made for"


def test_what_differs_on_the_programs_own_tensors_is_not_right(monkeypatch: pytest.MonkeyPatch):
    named_peers(monkeypatch, eager_9="none")
    further = replace(APPLIED, text="further")
    with Measurer(lambda: ChildProcess(FAKE)) as measurer:
        asked = against_peers(*peers("ours_2"), INPUTS, measurer, applied=further, on_its_own=True)
        other = against_peers(*peers("ours_2"), INPUTS, measurer, applied=further)
    assert asked.reason == "differs from the original by 2e-3, more than 1e-3, on the program's own tensors"
    assert other.reason is None


def test_only_the_peers_that_are_asked_for(monkeypatch: pytest.MonkeyPatch):
    named_peers(monkeypatch, eager_9="none", compiled_7="default")
    with Measurer(lambda: ChildProcess(FAKE)) as measurer:
        found = against_peers(*peers("ours_2"), INPUTS, measurer, names=["eager_9"])
    assert found.on_device.peers == {"eager_9": 9.0}
    assert found.on_device.best_gain == found.on_device.gain == 4.5


def test_what_replays_graphs_of_its_own_is_timed_as_it_is_called(monkeypatch: pytest.MonkeyPatch):
    named_peers(monkeypatch, eager_9="none")
    monkeypatch.setattr("mugraph.tune.against.CALLED_PEERS", {"replaying_3": "reduce-overhead"})
    with Measurer(lambda: ChildProcess(FAKE)) as measurer:
        found = against_peers(*peers("ours_2"), INPUTS, measurer, names=["eager_9", "replaying_3"])
        usual = against_peers(*peers("ours_2"), INPUTS, measurer)
    assert found.on_device.peers == {"eager_9": 9.0}
    assert found.as_called.peers == {"eager_9": 90.0, "replaying_3": 30.0}
    assert (found.as_called.best_peer, found.as_called.best_gain) == ("replaying_3", 1.5)
    assert found.refused == {}
    assert usual.as_called.peers == {"eager_9": 90.0}


def test_a_step_begins_before_each_call_of_what_replays(monkeypatch: pytest.MonkeyPatch, tmp_path: Path):
    done: list[object] = []

    def compiled(function: Callable[..., object], **how: object) -> Callable[..., object]:
        done.append(how["mode"])
        return function

    monkeypatch.setattr(torch, "compile", compiled)
    monkeypatch.setattr(torch.compiler, "cudagraph_mark_step_begin", lambda: done.append("begun"))
    text = "def run(x):\n    return x + 1\n"
    for compiler in ("default", "reduce-overhead"):
        call = load(Subject(compiler, text, "run", compiler), tmp_path)
        assert [call(1), call(2)] == [2, 3]
    assert done == [None, "reduce-overhead", "begun", "begun"]


def test_peers_are_ready_before_they_are_compared(monkeypatch: pytest.MonkeyPatch):
    """What was compiled while the search ran is not compiled again."""
    asked: list[object] = []

    class Noting(ChildProcess):
        def ask(self, request: Any, timeout_s: float) -> Any:
            asked.append(request)
            return super().ask(request, timeout_s)

    named_peers(monkeypatch, eager_9="none", slow_7="default", bad="default")
    with contextlib.closing(Peers(Measurer(lambda: Noting(FAKE)))) as early:
        early.begin(peer_subjects(subject("eager"), ["eager_9", "slow_7", "bad"]), INPUTS)
        assert early.done(30)
        found = against_peers(*peers("ours_2"), INPUTS, early.measurer)
    prepared = [one.subject.name for one in asked if isinstance(one, Prepare)]
    assert sorted(prepared) == ["bad", "eager_9", "ours_2", "slow_7"]
    assert found.on_device.peers == {"eager_9": 9.0, "slow_7": 7.0}
    assert "shared memory" in found.refused["bad"]


def test_peers_that_hang_are_given_up():
    with contextlib.closing(Peers(Measurer(lambda: ChildProcess(FAKE)), patience_s=0.1)) as early:
        early.begin([subject("hang_1")], INPUTS)
        assert not early.done(0)
        early.begin([subject("next_2")], INPUTS)
        assert early.done(30)
        assert early.measurer.compare([subject("next_2")], INPUTS)["next_2"] == Summary(2.0, 0.0, 40)


def test_peers_that_nobody_needs_end_soon_and_leave_their_process_to_the_next():
    """It takes long to be ready. What they were still to compile is not compiled."""
    processes: list[ChildProcess] = []
    asked: list[str] = []

    class Noting(ChildProcess):
        def ask(self, request: Any, timeout_s: float) -> Any:
            asked.append(request.subject.name if isinstance(request, Prepare) else type(request).__name__)
            return super().ask(request, timeout_s)

    def start() -> ChildProcess:
        processes.append(Noting(FAKE))
        return processes[-1]

    with contextlib.closing(Peers(Measurer(start), patience_s=60)) as early:
        early.begin([subject("slow_1"), subject("unneeded_1")], INPUTS)
        while not asked:
            time.sleep(0.01)
        early.begin([subject("skipped_2")], INPUTS)
        early.begin([subject("next_3")], INPUTS)
        assert early.done(30)
        assert asked == ["slow_1", "Drop", "next_3"]
        assert early.measurer.compare([subject("next_3")], INPUTS)["next_3"] == Summary(3.0, 0.0, 40)
    assert [one.restarts for one in processes] == [0]


def test_what_was_begun_is_kept_where_others_are_begun_beside_it():
    asked: list[str] = []

    class Noting(ChildProcess):
        def ask(self, request: Any, timeout_s: float) -> Any:
            asked.append(request.subject.name if isinstance(request, Prepare) else type(request).__name__)
            return super().ask(request, timeout_s)

    with contextlib.closing(Peers(Measurer(lambda: Noting(FAKE)), patience_s=0.0)) as early:
        early.begin([subject("slow_1"), subject("b_2")], INPUTS)
        early.begin([subject("slow_1"), subject("b_2"), subject("c_3")], INPUTS)
        assert early.done(30)
        assert early.is_ready
    assert asked == ["slow_1", "b_2", "c_3"]


def test_a_run_that_ends_waits_for_no_peers():
    early = Peers(Measurer(lambda: ChildProcess(FAKE)), patience_s=60)
    early.begin([subject("hang_1")], INPUTS)
    early.begin([subject("hang_2")], INPUTS)
    early.close()
    assert early.done(0)


def test_no_more_is_ready_once_the_process_is_gone():
    with Measurer(lambda: ChildProcess(FAKE)) as measurer:
        assert measurer.keep(subject("a_5"), INPUTS)
        assert not measurer.keep(subject("die"), INPUTS)
        assert measurer.compare([subject("a_5")], INPUTS, rounds=3)["a_5"] == Summary(5.0, 0.0, 3)
