"""`mugraph/report`: what a person attaches to an issue: versions, settings, engines and last errors, but no source
text."""

from __future__ import annotations

import asyncio
import platform
import sys
from collections import Counter
from dataclasses import asdict
from importlib.metadata import PackageNotFoundError, version
from typing import Any

import msgspec
from mugraph.protocol import messages as m

from mugraph_server import log
from mugraph_server.engine.client import ids
from mugraph_server.engine.keeper import Keeper
from mugraph_server.session import Session

ENGINE_S = 3.0
_LOG_LINES = 100


async def report(session: Session) -> dict[str, Any]:
    engines = await asyncio.gather(*(_engine(keeper) for keeper in session.engines.keepers))
    files = session.regions.all()
    return {
        "versions": {
            "mugraph": _version("mugraph"),
            "pygls": _version("pygls"),
            "lsprotocol": _version("lsprotocol"),
            "python": platform.python_version(),
            "platform": platform.platform(),
        },
        "server": {"python": sys.executable, "log": str(log.log_path())},
        "settings": {
            "default": asdict(session.configuration.default),
            "roots": {str(root): asdict(settings) for root, settings in session.configuration.by_root.items()},
        },
        "engines": list(engines),
        "files": {
            "open": len(session.documents.sources),
            "regions": dict(sorted(Counter(file.state(mark) for file in files for mark in file.marks).items())),
        },
        "searches": session.searches.begun,
        "late results dropped": session.searches.dropped,
        "errors": list(log.errors),
        "log": list(log.recent)[-_LOG_LINES:],
    }


async def _engine(keeper: Keeper) -> dict[str, Any]:
    """What it says of itself, if it runs and can."""
    known: dict[str, Any] = {"root": str(keeper.root), **asdict(keeper.status)}
    known["versions"] = dict(keeper.status.versions)
    if keeper.status.state == "running":
        try:
            found = await asyncio.wait_for(keeper.ask(m.AskReport(next(ids)), m.Report), ENGINE_S)
        except Exception as error:
            known["report"] = f"none: {error or type(error).__name__}"
        else:
            known["report"] = msgspec.to_builtins(found)
    return known


def _version(package: str) -> str:
    try:
        return version(package)
    except PackageNotFoundError:
        return "not installed as a package"
