"""Changes on disk that the editor did not make: a formatter, a `git checkout`, a deleted kernel module.

Only the folders of open files are watched, without what is below them: a whole workspace may hold a million files.
"""

from __future__ import annotations

import asyncio
import os
import threading
from collections.abc import Callable
from pathlib import Path
from typing import Protocol, cast

from watchdog.events import (
    FileClosedEvent,
    FileCreatedEvent,
    FileDeletedEvent,
    FileModifiedEvent,
    FileMovedEvent,
    FileSystemEvent,
    FileSystemEventHandler,
)
from watchdog.observers import Observer
from watchdog.observers.api import ObservedWatch

from mugraph_server.log import logger

GATHER_S = 0.1
"""A checkout writes many files, and one write is several events."""

_EVENTS: list[type[FileSystemEvent]] = [
    FileClosedEvent,
    FileCreatedEvent,
    FileDeletedEvent,
    FileModifiedEvent,
    FileMovedEvent,
]


class _Observer(Protocol):
    def start(self) -> None: ...
    def stop(self) -> None: ...
    def schedule(
        self,
        event_handler: FileSystemEventHandler,
        path: str,
        *,
        recursive: bool = False,
        event_filter: list[type[FileSystemEvent]] | None = None,
    ) -> ObservedWatch: ...
    def unschedule(self, watch: ObservedWatch) -> None: ...


class Watch(FileSystemEventHandler):
    """changed: called in the loop with the paths of Python files and notebooks that changed."""

    def __init__(self, changed: Callable[[list[str]], None]) -> None:
        super().__init__()
        self._changed = changed
        self._loop = asyncio.get_running_loop()
        self._observer: _Observer | None = None
        self._counts: dict[str, int] = {}
        self._watches: dict[str, ObservedWatch] = {}
        self._paths: set[str] = set()
        self._waiting: asyncio.TimerHandle | None = None

    def add(self, path: str) -> None:
        folder = str(Path(path).parent)
        self._counts[folder] = self._counts.get(folder, 0) + 1
        if self._counts[folder] > 1 or not os.path.isdir(folder):
            return
        try:
            if self._observer is None:
                self._observer = cast("_Observer", Observer())
                self._observer.start()
            self._watches[folder] = self._observer.schedule(self, folder, recursive=False, event_filter=_EVENTS)
        except (OSError, RuntimeError) as error:  # no more inotify watches, a file system without them
            logger.warning("changes outside the editor are not seen in one folder: %s", error)

    def remove(self, path: str) -> None:
        folder = str(Path(path).parent)
        self._counts[folder] = self._counts.get(folder, 1) - 1
        if self._counts[folder] > 0:
            return
        del self._counts[folder]
        watch = self._watches.pop(folder, None)
        if watch is not None and self._observer is not None:
            try:
                self._observer.unschedule(watch)
            except (OSError, KeyError) as error:
                logger.info("a folder is still watched: %s", error)

    def stop(self) -> None:
        """Does not wait for its threads, which are daemons."""
        if self._observer is not None:
            threading.Thread(target=self._observer.stop, daemon=True).start()

    def on_any_event(self, event: FileSystemEvent) -> None:
        """In the observer's thread."""
        paths = [os.fsdecode(path) for path in (event.src_path, event.dest_path) if path]
        ours = [path for path in paths if path.endswith((".py", ".ipynb"))]
        if ours and not event.is_directory:
            try:
                self._loop.call_soon_threadsafe(self._gather, ours)
            except RuntimeError:  # the loop has ended, and the server with it
                return

    def _gather(self, paths: list[str]) -> None:
        self._paths.update(paths)
        if self._waiting is None:
            self._waiting = self._loop.call_later(GATHER_S, self._tell)

    def _tell(self) -> None:
        self._waiting = None
        paths, self._paths = sorted(self._paths), set()
        self._changed(paths)
