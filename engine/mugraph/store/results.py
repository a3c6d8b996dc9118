"""The store: JSON documents by key, in an SQLite file that any number of processes use at once.

SQLAlchemy takes about 150 ms to import, so this module does so when the store is first read or written, not before.
A result is a saving, never a need: a store that cannot be used loses what it holds and says so, and work goes on.
"""

from __future__ import annotations

import json
import logging
import time
from collections.abc import Callable, Mapping
from hashlib import sha256
from pathlib import Path
from typing import TYPE_CHECKING, TypeVar, cast

from mugraph.store.place import cache_folder, file_id, set_aside

if TYPE_CHECKING:
    from sqlalchemy import Connection, Engine

SCHEMA = 2
"""Number of the tables' layout, kept in SQLite's `user_version`; raised with every change of it."""
FILE = "results.sqlite"
_BUSY_S = 10.0
_log = logging.getLogger("mugraph.store")
T = TypeVar("T")


def _seal(key: str, text: str) -> str:
    """By which a change of an entry, or another entry in its place, is noticed."""
    return sha256(f"{key}\n{text}".encode()).hexdigest()


class _Unusable(Exception):
    """The file is no database of ours; the message says what it is."""


class Store:
    """Use `Store.open`; a context manager.

    notices: what went wrong with the file, one clear sentence each, for the user
    """

    def __init__(self, path: Path | None) -> None:
        self._path = path
        self._engine: Engine | None = None
        self._seen: tuple[int, int] | None = None
        self.notices: list[str] = []

    @staticmethod
    def open(path: Path | None = None) -> Store:
        """The store at `path`, by default the user's (`cache_folder`). Touches no file yet; never fails."""
        return Store(path or cache_folder() / FILE)

    @staticmethod
    def in_memory() -> Store:
        """A store that ends with this process."""
        return Store(None)

    def get(self, key: str) -> Mapping[str, object] | None:
        """The document last put under the key. One that was changed by hand is none; `notices` names it."""

        def read(connection: Connection) -> str | None:
            from mugraph.store import tables

            return tables.select_document(connection, key)

        text = self._run(read, writes=False)
        if text is None:
            return None
        seal, _, text = text.partition("\n")
        if seal != _seal(key, text):
            self.notice(f"An entry of the store {self._path} was changed since it was written; it is not used.")
            return None
        try:
            document = json.loads(text)
        except ValueError as error:
            _log.info("what is stored cannot be read: %s", error)
            return None
        return cast(Mapping[str, object], document) if isinstance(document, dict) else None

    def put(self, key: str, document: Mapping[str, object]) -> None:
        """Files the document under the key, in place of an earlier one; all of it or nothing, whatever happens.

        Its keys keep their order: kernels name their sizes in it, and a stored result is to be written as a new one is.
        Raises TypeError or ValueError for a document that is no JSON.
        """
        text = json.dumps(document, allow_nan=False)

        def write(connection: Connection) -> None:
            from mugraph.store import tables

            tables.upsert(connection, key, f"{_seal(key, text)}\n{text}", time.time())

        self._run(write, writes=True)

    def close(self) -> None:
        if self._engine is not None:
            self._engine.dispose()
            self._engine = None

    def __enter__(self) -> Store:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()

    def _run(self, work: Callable[[Connection], T], writes: bool) -> T | None:
        """What the work gives, done in one transaction; None when even a new file could not do it."""
        from sqlalchemy.exc import DatabaseError, OperationalError

        from mugraph.store import tables

        deadline, tries = time.monotonic() + _BUSY_S, 0
        while tries < 3:
            try:
                with tables.transaction(self._connected(), writes) as connection:
                    return work(connection)
            except _Unusable as error:
                self._replace(str(error))
            except OperationalError as error:
                if "locked" in str(error.orig):
                    if time.monotonic() < deadline:  # SQLite does not wait while a file is switched to WAL
                        time.sleep(0.01)
                        continue
                    self.notice(f"The store {self._path} is in use by another process; a result was not kept.")
                    return None
                self._forget(f"The store {self._path} cannot be used ({error.orig}); results last until mugraph ends.")
            except DatabaseError as error:
                self._replace(f"is damaged ({error.orig})")
            except OSError as error:
                self._forget(f"The store {self._path} cannot be written ({error}); results last until mugraph ends.")
            tries += 1
        return None

    def _connected(self) -> Engine:
        """The engine, with the tables made. Raises _Unusable, OSError, or what SQLAlchemy raises."""
        if self._engine is not None:
            return self._engine
        from mugraph.store import tables

        if self._path is not None:
            self._path.parent.mkdir(parents=True, exist_ok=True)
        engine = tables.engine(self._path, _BUSY_S)
        try:
            with tables.transaction(engine, writes=False) as connection:
                self._seen = file_id(self._path) if self._path else None
                found = tables.schema(connection)
            if found > SCHEMA:
                raise _Unusable(f"was written by a newer mugraph (schema {found}, this one knows {SCHEMA})")
            if found < SCHEMA:
                with tables.transaction(engine, writes=True) as connection:
                    tables.create(connection, SCHEMA)
        except BaseException:
            engine.dispose()
            raise
        self._engine = engine
        return engine

    def _replace(self, reason: str) -> None:
        """Sets the file aside; the next try makes a new one."""
        self.close()
        if self._path is None:
            return
        try:
            aside = set_aside(self._path, self._seen or file_id(self._path))
        except OSError as error:
            self._forget(f"The store {self._path} {reason} and cannot be moved ({error}); it is not used.")
            return
        self._seen = None
        if aside is not None:
            self.notice(f"The store {self._path} {reason}; it was set aside as {aside.name} and a new one begun.")

    def _forget(self, notice: str) -> None:
        """Goes on in memory."""
        self.close()
        self._path = None
        self.notice(notice)

    def notice(self, sentence: str) -> None:
        """Something for the user to know, once."""
        self.notices.append(sentence)
        _log.warning(sentence)
