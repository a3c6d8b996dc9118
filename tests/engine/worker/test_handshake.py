"""The first message, settings, and what is no message."""

from __future__ import annotations

import random
import time

from mugraph.protocol import messages as m
from mugraph.protocol.settings import EngineSettings
from mugraph.protocol.values import Document

from .conftest import Engine, Start, quick


def test_ready_says_what_is_here(start: Start):
    engine = start()
    began = time.monotonic()
    ready = engine.hello()
    print(f"ready after {time.monotonic() - began:.2f} s")
    assert ready.protocol == m.PROTOCOL
    assert ready.problems == []
    assert set(ready.versions) == {"mugraph", "torch", "triton", "python"}
    assert ready.pid == engine.pid
    assert ready.device.kind in ("gpu", "none")


def test_the_first_message_has_to_be_hello(start: Start):
    engine = start()
    assert engine.refused(m.AskReport(7)) == "the first message has to be hello"
    assert engine.hello().pid == engine.pid
    assert "already" in engine.refused(m.Hello(engine.id()))


def test_another_protocol_is_refused_in_one_sentence(start: Start):
    engine = start()
    assert "speaks protocol" in engine.refused(m.Hello(1, protocol=99))
    assert engine.process.wait(5) == 1


def test_wrong_settings_change_nothing(engine: Engine):
    for wrong in (
        EngineSettings(target="h9000"),
        EngineSettings(budget_s=0),
        EngineSettings(budget_s=float("nan")),
        EngineSettings(max_ops=0),
    ):
        assert engine.refused(m.Configure(engine.id(), wrong))
    assert engine.ask(m.AskReport(engine.id()), m.Report).settings == quick()
    settings = quick(5.0)
    assert engine.ask(m.Configure(engine.id(), settings), m.Configured).settings == settings
    assert engine.ask(m.AskReport(engine.id()), m.Report).settings == settings


def test_lines_that_are_no_messages_are_answered_and_skipped(engine: Engine):
    engine.raw(b"Welcome to gpu-box!\n\n" + b'{"type":"ping"}\n{"type":"nonsense","id":5}\n{"type":"find","id":6}\n')
    engine.raw(b'{"type":"ping","id":"x"}\n\xff\xfe\x00\n[1,2\n{"type":"ping","id":9}')
    engine.raw(b"\n")
    engine.until(lambda said: isinstance(said, m.Pong) and said.id == 9)
    failed = engine.all_of(m.Failed)
    assert [said.id for said in failed if said.id is not None] == [5, 6]
    assert len(failed) >= 6
    assert all(said.message and "Traceback" not in said.message for said in failed)


def test_thousands_of_random_messages_do_no_harm(engine: Engine):
    """Well-formed and otherwise, in any order, about documents there are and are not."""
    rng = random.Random(3)
    uris = [f"file:///nowhere/{number}.py" for number in range(4)]
    texts = [
        None,
        "",
        "def f(x:\n",
        "x = 1\n",
        "# mugraph: x=f16[\ndef f(x): return x @ x\n",
        "\x00",
        "é\ud83d\ude00"[:1],
    ]

    def text(length: int) -> str:
        return "".join(rng.choice('ab{}[]":,\\ \x7fé') for _ in range(length))

    def some_document() -> Document:
        uri = rng.choice(uris)
        return Document(uri, uri.removeprefix("file://"), rng.randint(-3, 9), rng.choice(texts))

    def message() -> m.ToEngine:
        id = engine.id()
        keys = rng.choice([None, [], [text(3)]])
        return rng.choice(
            [
                lambda: m.Ping(id),
                lambda: m.Find(id, some_document(), rng.choice(["background", "visible", "saved"])),
                lambda: m.Search(id, some_document(), keys=keys, again=rng.random() < 0.5),
                lambda: m.Cancel(rng.randint(0, id)),
                lambda: m.CancelDocument(rng.choice(uris)),
                lambda: m.Close(rng.choice(uris)),
                lambda: m.Prioritise(rng.choice(uris), "saved"),
                lambda: m.PrepareEdit(id, some_document(), keys),
                lambda: m.PrepareRevert(id, some_document()),
                lambda: m.InsertShapes(id, some_document(), text(4), rng.choice([None, {}, {text(2): text(3)}])),
                lambda: m.Draw(id, rng.choice(uris), text(4), width=rng.randint(-5, 200)),
                lambda: m.Preview(id, some_document()),
                lambda: m.CheckKernels(id, some_document()),
                lambda: m.AskRecordings(id, some_document()),
                lambda: m.Configure(id, rng.choice([quick(), EngineSettings(budget_s=-1)])),
                lambda: m.Hello(id),
            ]
        )()

    asked: set[int] = set()
    for number in range(2000):
        if rng.random() < 0.2:
            engine.raw(text(rng.randint(0, 200)).encode() + b"\n")
        else:
            sent = message()
            engine.send(sent)
            if hasattr(sent, "id") and not isinstance(sent, m.Cancel):
                asked.add(sent.id)
        if number % 50 == 0:
            engine.ask(m.Ping(engine.id()), m.Pong)
    for uri in uris:
        engine.send(m.CancelDocument(uri))
    engine.ask(m.Configure(engine.id(), quick()), m.Configured)
    answers = {said.id for said in engine.heard if not isinstance(said, (m.Progress, m.RegionChanged))}
    deadline = time.monotonic() + 30
    while asked - answers and time.monotonic() < deadline:
        answers |= {getattr(engine.until(lambda _: True), "id", None)}
    assert asked - answers == set()
    assert engine.ask(m.AskReport(engine.id()), m.Report).errors == []
