"""The search of a whole workspace: of what is open at once, of the other files one after the other."""

from __future__ import annotations

import asyncio
from pathlib import Path

from pygls.uris import from_fs_path

from mugraph_server.documents.source import Document, Source
from mugraph_server.documents.text import Text
from mugraph_server.log import logger
from mugraph_server.session import Session
from mugraph_server.workspace_files import candidates


class WorkspaceSearch:
    def __init__(self, session: Session) -> None:
        self._session = session
        self._others: asyncio.Task[None] | None = None

    async def begin(self) -> int:
        """Starts the searches in the background, in place of any that are under way. The answer is the number of
        files."""
        session = self._session
        self.cancel()
        found = await asyncio.to_thread(candidates, list(session.roots.folders))
        waiting = [
            (uri, path, text)
            for path, text in found
            if (uri := from_fs_path(str(path))) is not None and session.documents.source(uri) is None
        ]
        self._others = session.spawn(self._search(waiting))
        for source in session.documents.sources:
            session.analysis.search(source, again=False)
        return len(found)

    def cancel(self) -> None:
        """Cancels the searches of the files that are not open."""
        if self._others is not None:
            self._others.cancel()

    async def _search(self, files: list[tuple[str, Path, str]]) -> None:
        for uri, path, text in files:
            if self._session.documents.source(uri) is None:
                source = Source(uri, str(path), "file", [Document(uri, 0, Text(text))])
                await self._session.analysis.search_other(source)
        logger.info("the workspace's %d files have been searched", len(files))
