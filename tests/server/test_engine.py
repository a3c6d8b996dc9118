"""Keeping an engine: what is open when it dies fails at once; one that hangs is ended, one that ignores all killed."""

from __future__ import annotations

import asyncio
import time
from collections.abc import Awaitable, Callable
from pathlib import Path

import psutil
import pytest
from mugraph.protocol import messages as m
from mugraph.protocol.settings import EngineSettings
from mugraph.protocol.values import Document
from mugraph_server.engine.client import ids
from mugraph_server.engine.command import Command
from mugraph_server.engine.keeper import Keeper, Patience
from mugraph_server.engine.state import EngineGone, EngineRefused

from tests.server.conftest import Control
from tests.server.support.processes import wait_gone
from tests.server.support.texts import IMPROVED

_SHORT = Patience(start=3.0, ping_every=0.2, answer=0.3, back_off=(0.05, 0.05), crashes=3, within=60)


def _document(root: Path) -> Document:
    return Document("a", str(root / "a.py"), 1, IMPROVED)


def _run(
    root: Path, control: Control, test: Callable[[Keeper, list[str]], Awaitable[None]], patience: Patience = _SHORT
) -> None:
    states: list[str] = []

    async def main() -> None:
        command = Command(tuple(control.command), "for a test", None)
        keeper = Keeper(
            root, command, EngineSettings(), lambda _: None, lambda _, now: states.append(now.state), patience
        )
        try:
            await test(keeper, states)
        finally:
            began = time.monotonic()
            await keeper.stop()
            assert time.monotonic() - began < 2

    asyncio.run(main())
    assert wait_gone(control.processes(), 1) == []


def test_what_is_open_fails_when_the_engine_dies(root: Path, control: Control) -> None:
    """Even where something it started holds its output open."""
    control.tell(search_s=60, children=["own"])

    async def test(keeper: Keeper, states: list[str]) -> None:
        search = asyncio.create_task(keeper.ask(m.Search(next(ids), _document(root)), m.Finished))
        while not control.heard("searching f"):
            await asyncio.sleep(0.02)
        child = psutil.Process(control.pids()[1])
        psutil.Process(control.pids()[0]).kill()
        began = time.monotonic()
        with pytest.raises(EngineGone):
            await search
        assert time.monotonic() - began < 1
        await keeper.ask(m.Ping(next(ids)), m.Pong)
        assert states.count("running") == 2
        assert states.count("restarting") >= 1
        child.kill()

    _run(root, control, test)


@pytest.mark.parametrize("how", ["stopped", "silent"])
def test_an_engine_that_hangs_is_ended_and_started_again(root: Path, control: Control, how: str) -> None:
    control.tell(**({"on_search": "hang"} if how == "stopped" else {"on_ping": "silent", "search_s": 60}))

    async def test(keeper: Keeper, states: list[str]) -> None:
        with pytest.raises(EngineGone):
            await asyncio.wait_for(keeper.ask(m.Search(next(ids), _document(root)), m.Finished), 5)
        control.tell()
        assert (await keeper.ask(m.Ping(next(ids)), m.Pong)).id
        assert keeper.status.restarts == 1

    _run(root, control, test)


def test_an_engine_that_never_becomes_ready(root: Path, control: Control) -> None:
    control.tell(on_hello="silent")

    async def test(keeper: Keeper, states: list[str]) -> None:
        with pytest.raises(EngineGone, match="not ready"):
            await keeper.ask(m.Ping(next(ids)), m.Pong)
        assert keeper.status.state == "errored"

    _run(root, control, test, Patience(start=0.5, back_off=(0.05,), crashes=2))


def test_a_cancelled_question_is_cancelled_there_too(root: Path, control: Control) -> None:
    control.tell(search_s=60)

    async def test(keeper: Keeper, states: list[str]) -> None:
        search = asyncio.create_task(keeper.ask(m.Search(next(ids), _document(root)), m.Finished))
        while not control.heard("searching f"):
            await asyncio.sleep(0.02)
        search.cancel()
        while not control.heard("Cancel"):
            await asyncio.sleep(0.02)

    _run(root, control, test)


def test_settings_changed_while_it_starts_reach_it(root: Path, control: Control) -> None:
    async def test(keeper: Keeper, states: list[str]) -> None:
        ping = asyncio.create_task(keeper.ask(m.Ping(next(ids)), m.Pong))
        await asyncio.sleep(0)
        await keeper.configure(EngineSettings(budget_s=3))
        await ping
        report = await keeper.ask(m.AskReport(next(ids)), m.Report)
        assert report.settings.budget_s == 3
        assert report.settings.target == "auto"

    _run(root, control, test)


def test_restart_while_it_starts_serves_who_waits(root: Path, control: Control) -> None:
    async def test(keeper: Keeper, states: list[str]) -> None:
        asked = asyncio.create_task(keeper.ask(m.Ping(next(ids)), m.Pong))
        await asyncio.sleep(0.05)
        await keeper.restart()
        with pytest.raises(EngineGone):
            await asked
        assert await keeper.ask(m.Ping(next(ids)), m.Pong)

    _run(root, control, test)


def test_restarts_at_once_leave_one_engine(root: Path, control: Control) -> None:
    """And who asks between the end of one and the beginning of the next is served by the last."""

    async def test(keeper: Keeper, states: list[str]) -> None:
        await keeper.ask(m.Ping(next(ids)), m.Pong)
        before = keeper.generation
        first, second = (asyncio.create_task(keeper.restart()) for _ in range(2))
        await asyncio.sleep(0)
        assert keeper.generation != before
        assert await keeper.ask(m.Ping(next(ids)), m.Pong)
        await asyncio.gather(first, second)
        running = {pid for pid in control.pids() if psutil.pid_exists(pid)}
        assert running == {keeper.status.pid}

    _run(root, control, test)


def test_an_unreadable_answer_is_refused_not_waited_for(root: Path, control: Control) -> None:
    async def test(keeper: Keeper, states: list[str]) -> None:
        request = m.InsertShapes(next(ids), _document(root), "nothing")
        with pytest.raises(EngineRefused, match="no such function"):
            await keeper.ask(request, m.Edit)
        with pytest.raises(EngineRefused, match="answered Ping with Pong"):
            await keeper.ask(m.Ping(next(ids)), m.Edit)

    _run(root, control, test)


def test_stop_kills_what_takes_no_notice(root: Path, control: Control) -> None:
    control.tell(ignore_exit=True, children=["group", "own"])

    async def test(keeper: Keeper, states: list[str]) -> None:
        await keeper.ask(m.Ping(next(ids)), m.Pong)
        assert len(control.processes()) == 3

    _run(root, control, test)
