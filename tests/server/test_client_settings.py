"""When settings count: a client may take its time to say what they are."""

from __future__ import annotations

import asyncio
from collections.abc import Sequence
from types import SimpleNamespace
from typing import Any, cast

import pytest
from mugraph.protocol.settings import Settings
from mugraph_server import client_settings
from mugraph_server.client_settings import ClientSettings
from mugraph_server.roots import Roots


class _Client:
    """Answers what its configuration is once it has been let."""

    def __init__(self) -> None:
        self.can = SimpleNamespace(configuration=True)
        self.may_answer = asyncio.Event()

    async def configuration(self, scopes: Sequence[str | None]) -> list[object]:
        await self.may_answer.wait()
        return [{"target": "h100"} for _ in scopes]


@pytest.mark.parametrize("is_late", [False, True])
def test_settings_that_come_late_count_from_then_on(is_late: bool, monkeypatch: pytest.MonkeyPatch) -> None:
    async def session() -> None:
        client, seen = _Client(), list[tuple[str, str]]()

        async def changed(before: list[Settings], now: list[Settings]) -> None:
            seen.append((before[0].target, now[0].target))

        given = ClientSettings(cast(Any, client), Roots(), lambda _: None, changed)
        if is_late:
            monkeypatch.setattr(client_settings, "CONFIGURED_S", 0.0)
        else:
            client.may_answer.set()
        first = asyncio.create_task(given.first())
        await given.known()
        assert given.configuration.default.target == ("auto" if is_late else "h100")
        client.may_answer.set()
        await first
        assert given.configuration.default.target == "h100"
        assert seen == [("auto", "h100")]

    asyncio.run(session())
