"""What the recorder cannot look at is said, with the reason; the user's program goes on as if nothing were."""

from __future__ import annotations

import sys
from pathlib import Path
from types import ModuleType, SimpleNamespace

import pytest
from mugraph.recording.inside.mugraph_recorder.clock import Clock, Time
from mugraph.recording.inside.mugraph_recorder.instrument import Signature
from mugraph.recording.inside.mugraph_recorder.looks import Seen, wants_gradients
from mugraph.recording.inside.mugraph_recorder.passed import LONGEST, MOST, Passed, reason
from mugraph.recording.inside.mugraph_recorder.places import NoPlace, place
from mugraph.recording.inside.mugraph_recorder.spool import Spool

from .conftest import Record

PROGRAM = """
import os, torch
from dataclasses import dataclass, field
from pathlib import PurePosixPath
from torch import nn

class Odd(torch.Tensor):
    def is_contiguous(self, *_): raise ValueError("no strides here")

class Place(PurePosixPath):
    def __str__(self): raise KeyError(self)

@dataclass
class Config:
    sizes: list = field(default_factory=list)

class Model(nn.Module):
    def __init__(self, config): super().__init__()
    def forward(self, x): return x

def odd(x): return 7
def opened(x, path): return x

strange = torch.zeros(2).as_subclass(Odd)
config = Config()
del config.sizes
opened(Model(config)(torch.ones(2)), Place("a"))
odd(strange)
child = os.fork()
odd(strange)
if child:
    os.waitpid(child, 0)
    with open(os.path.join(os.environ["MUGRAPH_RECORD_TO"], "other.jsonl"), "w") as file:
        file.write('{"is": "set"}\\n{"is": "se')
    print("out")
"""


def test_what_is_said(tmp_path: Path, record: Record):
    (tmp_path / "program.py").write_text(PROGRAM)
    run = record(sys.executable, "program.py")
    assert (run.returncode, run.stdout) == (0, "out\n"), run.stderr
    assert "program.py: odd: a call could not be kept, 3 times: ValueError: no strides here" in run.stderr
    assert "program.py: Model.__init__: how an object is made could not be kept: AttributeError: " in run.stderr
    assert "program.py: opened: the objects of a call could not be kept" in run.stderr
    assert "a line of what was seen could not be kept: ValidationError: " in run.stderr, "but for one that is cut off"


def test_nothing_is_said_of_nothing(tmp_path: Path, record: Record):
    (tmp_path / "program.py").write_text("import torch\ndef f(x): return x\nf(torch.zeros(2))\n")
    run = record(sys.executable, "program.py")
    assert run.stderr.count("\n") == 1, run.stderr


def test_times_on_the_device(monkeypatch: pytest.MonkeyPatch):
    """The device fails when an event is made, and when one is read."""

    class Event:
        def __init__(self, enable_timing: bool) -> None: ...
        def record(self) -> None: ...
        def query(self) -> bool:
            raise RuntimeError("CUDA error: an illegal memory access was encountered")

    def broken() -> bool:
        raise RuntimeError("no driver")

    cuda = SimpleNamespace(is_available=lambda: True, is_current_stream_capturing=lambda: False, Event=Event)
    monkeypatch.setitem(sys.modules, "torch", SimpleNamespace(cuda=cuda))
    passed, time = Passed(), Time()
    clock = Clock(lambda: None, passed=passed)
    for _ in range(2):
        clock.begin(0, sys._getframe(), time, 1, on_device=True)
        clock.end()
        clock.read()
        cuda.is_available = broken
    what = "the time of a call on the device"
    assert passed.counts == {
        ("", "", what, "RuntimeError: CUDA error: an illegal memory access was encountered"): 1,
        ("", "", what, "RuntimeError: no driver"): 1,
    }
    assert (time.first.calls, time.rest.calls, time.device_calls) == (1, 1, 0), "the calls themselves are timed"


def test_a_place_that_raises(monkeypatch: pytest.MonkeyPatch):
    class Lazy(ModuleType):
        def __getattr__(self, name: str) -> object:
            raise ImportError(f"{name} needs another package")

    def function() -> None: ...

    function.__module__, function.__qualname__ = "lazy_module", "function"
    monkeypatch.setitem(sys.modules, "lazy_module", Lazy("lazy_module"))
    with pytest.raises(NoPlace, match=r"looked for in lazy_module \(ImportError: function needs another package\)"):
        place(function)


def seen(picture: dict[str, object] | None) -> Seen:
    return Seen(Signature("a.py", "f", None, ()), 0, {}, {}, ("cpu",), None, picture=picture)


def test_a_picture_that_is_no_json(tmp_path: Path):
    passed = Passed()
    spool = Spool(str(tmp_path), passed)
    spool.write(seen({"number": float("nan")}), 1.0)
    spool.write_passed()
    spool.write_passed()
    (file,) = tmp_path.iterdir()
    call, over = file.read_text().splitlines()
    assert '"picture"' not in call
    assert over.startswith('{"is": "passed", "over": [["a.py", "f", "the objects of a call", "ValueError: ')


def test_a_folder_that_cannot_be_written(tmp_path: Path, capsys: pytest.CaptureFixture[str]):
    (tmp_path / "file").write_text("")
    for name, said in (("gone", ""), ("file", "mugraph: what is seen cannot be recorded (Not a directory)\n")):
        spool = Spool(str(tmp_path / name), Passed())
        spool.write(seen(None), 1.0)
        spool.write(seen(None), 1.0)
        assert capsys.readouterr().err == said


def test_pytorch_that_is_being_imported(monkeypatch: pytest.MonkeyPatch):
    """Code of the user's that it imports runs before it can be asked anything."""
    monkeypatch.setitem(sys.modules, "torch", ModuleType("torch"))
    assert not wants_gradients()


def test_reasons_are_short_and_few():
    class Loud(Exception):
        def __str__(self) -> str:
            raise KeyError

    assert reason(Loud(object(), "two\n  words")) == "Loud: two words"
    assert len(reason(ValueError("x" * 999))) == LONGEST
    passed = Passed()
    for number in range(MOST + 3):
        passed.note("a.py", "f", "a call", ValueError(str(number)))
    assert passed.counts["", "", "a call", "other reasons"] == 3
    assert sum(passed.counts.values()) == MOST + 3
