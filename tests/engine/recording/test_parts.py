"""The recorder's parts, without a process: first statements, keys, words, and whether recordings still fit."""

from __future__ import annotations

import ast
import enum
import itertools
import sys
from collections import Counter
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pytest
import torch
from mugraph.recording.inside.mugraph_recorder import looks as looks_module
from mugraph.recording.inside.mugraph_recorder.instrument import END, OPEN, SLOTS, TRACED, Signature, instrument
from mugraph.recording.inside.mugraph_recorder.looks import ENOUGH, OTHERS, Looks, Seen
from mugraph.recording.inside.mugraph_recorder.words import Opaque, words
from mugraph.recording.memory import Recorded, RecordedFunction, Recording, keep, recorded_shapes, together
from torch import nn


def builtin_names(looks: Looks) -> dict[str, Any]:
    return {SLOTS: looks.slots, TRACED: lambda: False, OPEN: looks.clock.open, END: looks.clock.end}


def run(text: str) -> tuple[dict[str, Any], Looks, list[Seen]]:
    """The module's names, with its functions watched."""
    said: list[Seen] = []
    looks = Looks(lambda seen, _: said.append(seen))
    tree = instrument(text, "m.py", looks.register)
    namespace: dict[str, Any] = {"torch": torch, "nn": nn, "__name__": "m", **builtin_names(looks)}
    exec(compile(tree, "m.py", "exec"), namespace)
    return namespace, looks, said


def test_only_what_a_comment_can_describe_is_watched():
    found: list[Signature] = []
    text = '''
import numba
def f(a, /, b, c=3, *rest, d, e=None, **more):
    """doc"""
    def inner(x): return x
async def g(x): return x
def none(): pass
class A:
    def __init__(self, dim): self.dim = dim
    def forward(self, x): return x
    def __getattr__(self, name): raise AttributeError
    @staticmethod
    def s(x): return x
    class B:
        def m(self, x): yield x
if True:
    @numba.njit(parallel=True)
    def compiled(x): return x
    def h(x): return x
'''

    def register(signature: Signature) -> int:
        found.append(signature)
        return len(found) - 1

    tree = instrument(text, "m.py", register)
    assert [one.name for one in found] == ["f", "g", "A.__init__", "A.forward", "A.B.m", "h"]
    assert [one.name for one in found[0].parameters] == ["a", "b", "c", "d", "e", "rest", "more"]
    assert found[3].owner == "A"
    function = tree.body[1]
    assert isinstance(function, ast.FunctionDef)
    assert ast.get_docstring(function) == "doc"
    statement = f"if not {TRACED}() and {SLOTS}[0]:\n    {SLOTS}[0](a, b, c, d, e, rest, more)"
    assert ast.unparse(function.body[1]) == statement
    assert ast.unparse(function.body[2]).endswith(
        f"finally:\n    if not {TRACED}() and {OPEN}[-1] == 0:\n        {END}()"
    )
    assert [one.name for one in found if one.timed] == ["f", "A.forward", "h"], "no generators and coroutines"
    compile(tree, "m.py", "exec")


def test_calls_are_told_apart_by_shapes_types_flags_and_numbers():
    names, looks, _ = run("def f(x, y=None, flag=False, n=1): return x")
    f = names["f"]
    f(torch.zeros(2, 3), n=1)
    f(torch.zeros(2, 3), n=2)
    f(torch.zeros(3, 2))
    f(torch.zeros(2, 3).half())
    f(torch.zeros(2, 3), flag=True)
    f(torch.zeros(2, 3), (torch.zeros(1), 2))
    f(torch.zeros(2, 3), (torch.zeros(2), 2))
    f(nn.Parameter(torch.zeros(2, 3)))
    assert [(dict(one.arguments), one.calls) for one in looks.sets] == [
        ({"x": "f32[2, 3]"}, 1),
        ({"x": "f32[2, 3]", "n": "2"}, 1),
        ({"x": "f32[3, 2]"}, 1),
        ({"x": "f16[2, 3]"}, 1),
        ({"x": "f32[2, 3]", "flag": "True"}, 1),
        ({"x": "f32[2, 3]", "y": "(f32[1], 2)"}, 1),
        ({"x": "f32[2, 3]", "y": "(f32[2], 2)"}, 1),
        ({"x": "f32[2, 3]"}, 1),  # of which a gradient is wanted
    ]


def test_sets_are_bounded_and_functions_without_tensors_left_alone(monkeypatch: pytest.MonkeyPatch):
    monkeypatch.setattr(looks_module, "MOST_SETS", 30)
    names, looks, said = run("def f(x): return x\ndef g(x): return x")
    for size in range(50):
        names["f"](torch.zeros(size))
    assert len(said) == 30
    assert [one.calls for one in looks.sets] == [1] * 30 + [20], "the others are counted together"
    assert looks.sets[-1].number == OTHERS
    for _ in range(ENOUGH + 2):
        names["g"](1)
    assert looks.slots[1] is None
    assert looks.slots[0] is not None


def test_a_function_called_all_the_time_is_sampled(monkeypatch: pytest.MonkeyPatch):
    names, looks, _ = run("def f(x): return x")
    x = torch.zeros(2)
    for _ in range(50_000):
        names["f"](x)
    assert looks.sets[0].calls == pytest.approx(50_000, rel=0.1)
    assert looks_module.WINDOW < 50_000


def test_little_slowdown(monkeypatch: pytest.MonkeyPatch):
    """The same small module with and without: once everything has been seen, few calls are made on top of its own."""
    monkeypatch.setattr(looks_module.time, "monotonic", lambda: 0.0)  # called all the time, whatever machine this is
    text = """
class Small(nn.Module):
    def __init__(self):
        super().__init__()
        self.linear = nn.Linear(16, 16)
    def forward(self, x):
        return scale(self.linear(x), 0.5)
def scale(x, s):
    return x * s
"""
    watched, _, _ = run(text)
    alone: dict[str, Any] = {"nn": nn, "__name__": "m"}
    exec(text, alone)
    modules = alone["Small"](), watched["Small"]()
    x = torch.zeros(4, 16)
    counts = [0, 0]
    with torch.no_grad():
        for number, module in enumerate(modules):
            for _ in range(2_000):
                module(x)

            def count(_frame: Any, event: str, _of: Any, number: int = number) -> None:
                counts[number] += event in ("call", "c_call")

            sys.setprofile(count)
            try:
                for _ in range(320):
                    module(x)
            finally:
                sys.setprofile(None)
    print(f"{counts[0] / 320} calls alone, {counts[1] / 320} recorded")
    assert counts[1] <= counts[0] + 320 * 8


def test_a_call_that_is_looked_at_costs_few_calls(monkeypatch: pytest.MonkeyPatch):
    """Of a function that is called seldom, so that every call is looked at and timed. And pictures are few."""
    ticks = itertools.count()
    monkeypatch.setattr(looks_module.time, "monotonic", lambda: float(next(ticks) * 1_000))
    pictures: list[object] = []
    real = looks_module.picture
    monkeypatch.setattr(looks_module, "picture", lambda *given: (pictures.append(0), real(*given))[1])
    names, looks, _ = run("def f(x, y): return x")
    x = torch.zeros(2)
    for _ in range(600):
        names["f"](x, 1)
    counts = 0

    def count(_frame: Any, event: str, _of: Any) -> None:
        nonlocal counts
        counts += event in ("call", "c_call")

    sys.setprofile(count)
    try:
        for _ in range(100):
            names["f"](x, 1)
    finally:
        sys.setprofile(None)
    assert looks.sets[0].calls == 700
    assert looks.sets[0].time.rest.calls == 699
    assert counts <= 100 * 32
    assert len(pictures) == 2
    for size in range(100):
        names["f"](torch.zeros(size), 1)
    assert len(pictures) == 2 + 7, "of further sizes no pictures are taken at once"


def test_modules_are_recorded_with_how_they_were_made():
    text = """
class Base(nn.Module):
    def __init__(self, dim, act=nn.ReLU):
        super().__init__()
        self.dim = dim
    def forward(self, x): return x
class Sub(Base):
    def __init__(self, size):
        super().__init__(size * 2)
    def forward(self, x): return super().forward(x)
"""
    names, looks, _ = run(text)
    import copy

    names["Base"](4, nn.GELU)(torch.zeros(1))
    names["Base"](8)(torch.zeros(1))
    copy.deepcopy(names["Base"](8))(torch.zeros(1))
    names["Sub"](3)(torch.zeros(2))
    found: Counter[tuple[str, str]] = Counter()
    for one in looks.sets:
        found[one.function.name, str(one.init)] += one.calls
    assert found == {
        ("Base.forward", "{'dim': '4', 'act': 'nn.GELU'}"): 1,
        ("Base.forward", "{'dim': '8'}"): 2,
        ("Sub.forward", "{'size': '3'}"): 1,
        ("Base.forward", "None"): 1,
    }
    assert len(looks._made) <= 1, "modules that are gone are forgotten"  # pyright: ignore[reportPrivateUsage]


def test_modules_are_told_apart_by_what_they_are_made_of():
    """Of a class without a constructor of its own, and of one whose constructor's arguments do not say it."""
    text = """
class Linear(nn.Linear):
    def forward(self, x): return super().forward(x)
class Gated(nn.Module):
    def __init__(self, act, number):
        super().__init__()
        self.act = act
        self.number = number
        self.cache = None
    def forward(self, x):
        self.cache = x
        return self.act(x)
"""
    names, looks, _ = run(text)
    x = torch.zeros(2, 4)
    kept: list[nn.Module] = []  # an object's number would be another's
    for of, module in (
        ("bias", names["Linear"](4, 4)),
        ("bias", names["Linear"](4, 4)),
        ("none", names["Linear"](4, 4, bias=False)),
        ("wide", names["Linear"](4, 8, bias=False)),
        ("relu", names["Gated"](nn.ReLU(), 1)),
        ("relu", names["Gated"](nn.ReLU(), 2)),
        ("gelu", names["Gated"](nn.GELU(), 1)),
        ("tanh", names["Gated"](nn.GELU("tanh"), 1)),
    ):
        kept.append(module)
        known = len(looks.sets)
        for _ in range(3):
            module(x)
        assert len(looks.sets) > known or of in ("bias", "relu"), of
    counts = Counter((one.function.name, one.structure) for one in looks.sets for _ in range(one.calls))
    found = Counter(name for name, _ in counts)
    assert found == {"Linear.forward": 3, "Gated.forward": 6}, "with the cache and without"
    assert max(counts.values()) == 6, "numbers that are not its shape tell no modules of one class apart"
    sets = [Recorded({"x": "f32[2, 4]"}, structure=one.structure, calls=one.calls) for one in looks.sets]
    assert len(together(sets)) == 9


def test_no_tensor_is_kept_alive_and_nothing_is_raised():
    import gc
    import weakref

    names, looks, _ = run("def f(x, **more): return None")
    x = torch.zeros(3)
    gone = weakref.ref(x)
    names["f"](x, y=x)
    del x
    gc.collect()
    assert gone() is None

    class Strange:
        def __getattribute__(self, name: str) -> object:
            raise RuntimeError(name)

    names["f"](Strange(), z=torch.zeros(1))
    names["f"](torch.zeros(1).to_sparse())
    names["f"](torch.nested.nested_tensor([torch.zeros(1), torch.zeros(2)]))
    assert torch.fx.symbolic_trace(names["f"]) is not None
    assert dict(looks.sets[0].arguments) == {"x": "f32[3]", "y": "f32[3]"}


class Colour(enum.Enum):
    RED = 1


@dataclass
class Config:
    dim: int
    name: str = "small"
    inner: object = None


SPACE: dict[str, object] = {"torch": torch, "nn": nn, "Colour": Colour, "Config": Config}


@pytest.mark.parametrize(
    ("value", "text"),
    [
        (torch.zeros(2, 0, dtype=torch.bfloat16), "bf16[2, 0]"),
        (torch.zeros(1, 4, dtype=torch.complex64), "c64[1, 4]"),
        (torch.tensor(3), "i64"),
        (torch.Size([1, 2]), "(1, 2)"),
        ((1,), "(1,)"),
        ([None, 1.5, "a'b"], '[None, 1.5, "a\'b"]'),
        (float("inf"), "float('inf')"),
        ("cuda:1", "'cpu'"),
        (torch.device("cuda"), "'cpu'"),
        (torch.float16, "torch.float16"),
        (nn.GELU, "nn.GELU"),
        (Colour.RED, "Colour.RED"),
        (Config(3, inner=Config(4, "big")), "Config(dim=3, inner=Config(dim=4, name='big'))"),
        ({"a": 1, "b": (True,)}, "{'a': 1, 'b': (True,)}"),
    ],
)
def test_words_are_source(value: object, text: str):
    assert words(value, torch.Tensor, SPACE) == text
    if not isinstance(value, torch.Tensor) and "cpu" not in text:
        assert eval(text, {"float": float, **SPACE}) == value


@pytest.mark.parametrize("value", [object(), nn.Linear(1, 1), "x" * 400, torch.zeros(1).to(torch.complex128), {1, 2}])
def test_what_has_no_words(value: object):
    with pytest.raises(Opaque):
        words(value, torch.Tensor, SPACE)


def kept(path: Path, functions: dict[str, list[Recorded]]) -> None:
    keep(path, Recording(str(path), {name: RecordedFunction(sets) for name, sets in functions.items()}))


def test_recordings_that_no_longer_fit_are_not_used(tmp_path: Path, monkeypatch: pytest.MonkeyPatch):
    monkeypatch.setenv("MUGRAPH_CACHE_DIR", str(tmp_path / "cache"))
    path = tmp_path / "m.py"
    text = "class A:\n    def __init__(self, d): 0\n    def forward(self, x, y=1): return x\ndef f(x): return x\n"
    kept(
        path,
        {
            "A.forward": [
                Recorded({"x": "f16[1]"}, {"d": "2"}, calls=1),
                Recorded({"x": "f16[2]"}, {"d": "3"}, calls=9),
            ],
            "f": [Recorded({}, opaque={"x": "Cache"}, calls=5), Recorded({"x": "f16[3]"}, calls=1)],
        },
    )
    kept(path, {"f": [Recorded({"x": "f16[4]"}, calls=1), Recorded({}, opaque={"x": "Cache"}, calls=5)]})
    assert recorded_shapes(path, text) == {
        "A.forward": {"x": "f16[2]"},
        "A.__init__": {"d": "3"},
        "f": {"x": "f16[4]"},
    }
    assert set(recorded_shapes(path, text.replace("self, d", "self, d, e"))) == {"f"}
    assert set(recorded_shapes(path, text.replace("f(x)", "f(z)"))) == {"A.forward", "A.__init__"}
    assert recorded_shapes(path, "def f(x:\n") == {}


def test_a_module_that_cannot_be_built_comes_last(tmp_path: Path, monkeypatch: pytest.MonkeyPatch):
    """Neither pictured nor made by a constructor that was seen, as of `class Linear(nn.Linear)`."""
    monkeypatch.setenv("MUGRAPH_CACHE_DIR", str(tmp_path))
    text = "class A:\n    def forward(self, x): return x\n"
    sets = [Recorded({"x": "f16[1]"}, seconds=2.0, structure="a"), Recorded({"x": "f16[2]"}, {}, structure="b")]
    path = tmp_path / "m.py"
    for kept, x in ((sets, "f16[2]"), (sets[:1], "f16[1]")):
        keep(path, Recording(str(path), {"A.forward": RecordedFunction(kept)}))
        assert recorded_shapes(path, text)["A.forward"] == {"x": x}


def test_equal_sets_of_several_processes_are_one():
    sets = [Recorded({"x": "f16[1]"}, calls=2), Recorded({"x": "f16[2]"}, calls=3), Recorded({"x": "f16[1]"}, calls=4)]
    assert [(one.arguments["x"], one.calls) for one in together(sets)] == [("f16[1]", 6), ("f16[2]", 3)]
