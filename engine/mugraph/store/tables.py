"""The store's one table, in SQLAlchemy's words. Importing this imports SQLAlchemy."""

from __future__ import annotations

from collections.abc import Generator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

from sqlalchemy import Column, Connection, Engine, Float, MetaData, String, Table, Text, create_engine, event, select
from sqlalchemy.dialects.sqlite import insert
from sqlalchemy.pool import NullPool, StaticPool

_metadata = MetaData()
_results = Table(
    "results",
    _metadata,
    Column("key", String(64), primary_key=True),
    Column("document", Text, nullable=False),
    Column("written", Float, nullable=False),  # seconds since 1970
)


def engine(path: Path | None, busy_s: float) -> Engine:
    """path: of the file, None for one in memory. busy_s: how long to wait for another process's write, in seconds.

    The file's connections are closed after each use: a worker may be forked or killed at any time.
    """
    if path is None:
        made = create_engine("sqlite://", poolclass=StaticPool, connect_args={"check_same_thread": False})
    else:
        made = create_engine(f"sqlite:///{path}", poolclass=NullPool, connect_args={"timeout": busy_s})

    def configure(connection: Any, _record: object) -> None:
        connection.isolation_level = None  # transactions are begun below, where they are meant
        if connection.execute("PRAGMA journal_mode").fetchone()[0] not in ("wal", "memory"):
            connection.execute("PRAGMA journal_mode=WAL")  # stays with the file
        connection.execute("PRAGMA synchronous=NORMAL")  # safe with WAL: a crash may lose the last write, nothing else

    def begin(connection: Connection) -> None:
        # A transaction that reads first and writes later fails at once, without waiting, if another wrote in between.
        connection.exec_driver_sql("BEGIN IMMEDIATE" if connection.get_execution_options().get("writes") else "BEGIN")

    event.listen(made, "connect", configure)
    event.listen(made, "begin", begin)
    return made


@contextmanager
def transaction(engine: Engine, writes: bool) -> Generator[Connection]:
    """A connection with a transaction that is committed at the end, or undone whole when anything is raised."""
    with engine.connect().execution_options(writes=writes) as connection, connection.begin():
        yield connection


def schema(connection: Connection) -> int:
    """Number of the layout the file has; 0 for a new file."""
    return int(connection.exec_driver_sql("PRAGMA user_version").scalar_one())


def create(connection: Connection, number: int) -> None:
    """New tables. What an earlier layout had is dropped."""
    if 0 < schema(connection) < number:
        _metadata.drop_all(connection)
    _metadata.create_all(connection)  # no error where another process was faster
    connection.exec_driver_sql(f"PRAGMA user_version = {number:d}")


def select_document(connection: Connection, key: str) -> str | None:
    return connection.execute(select(_results.c.document).where(_results.c.key == key)).scalar_one_or_none()


def upsert(connection: Connection, key: str, document: str, written: float) -> None:
    values = {"document": document, "written": written}
    statement = insert(_results).values(key=key, **values)
    connection.execute(statement.on_conflict_do_update(index_elements=["key"], set_=values))
