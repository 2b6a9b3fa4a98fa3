"""The database: one engine, `read()` and `write()` transactions, and translation of its errors.

SQLite uses WAL, `BEGIN IMMEDIATE` for writes and `BEGIN DEFERRED` for reads. The driver's default transactions start
with a read lock and lose updates when two of them begin to write.
"""

from __future__ import annotations

import sqlite3
from collections.abc import Callable, Iterator
from contextlib import closing, contextmanager, suppress
from pathlib import Path
from typing import Any, Final, Self, TypeVar

from sqlalchemy import Connection, Engine, create_engine, event, make_url, text
from sqlalchemy.exc import ArgumentError, DataError, DBAPIError
from sqlalchemy.exc import TimeoutError as NoneFreeError
from sqlalchemy.orm import Session

from onboard.domain.database_url import NO_PREPARED_STATEMENTS
from onboard.domain.private import private_file
from onboard.errors import ConflictError, DeadlockError, InputError, UnavailableError
from onboard.registry.failures import failure_of
from onboard.registry.server_url import require_usable

BUSY_SECONDS: Final = 30.0  # how long a SQLite transaction waits for another writer
IDLE_TRANSACTION_SECONDS: Final = 30  # PostgreSQL ends sessions with a longer idle transaction
PAUSED_TRANSACTION_SECONDS: Final = 900  # the same for transactions that wait for an artifact store
CONNECT_SECONDS: Final = 5  # timeout of a connection to PostgreSQL
_ATTEMPTS: Final = 3  # of a transaction that the server rolls back to resolve a deadlock
_WRITES: Final = "onboard_writes"
_SESSION_OPTIONS: Final = {"populate_existing": True, "synchronize_session": False}
T = TypeVar("T")


class Database:
    """A SQLite or PostgreSQL database with the registry's tables. Connects when first used.

    Args:
        url: SQLAlchemy URL: `sqlite:////path/file.db` or `postgresql+psycopg://user:secret@host/name`.
        foreign_keys: whether SQLite enforces them; off only in migrations, which rebuild tables.

    Raises:
        InputError: the URL is invalid, or names another kind of database.
    """

    def __init__(self, url: str, *, foreign_keys: bool = True) -> None:
        self.url = url
        self.engine = _engine(url, foreign_keys)
        self._reader = self.engine.execution_options(postgresql_readonly=True)
        self._glancer = self._reader if self.is_sqlite else self.engine.execution_options(isolation_level="AUTOCOMMIT")
        self._writer = self.engine.execution_options(**{_WRITES: True})

    @property
    def is_sqlite(self) -> bool:
        """Whether this is an embedded SQLite file."""
        return self.engine.dialect.name == "sqlite"

    @contextmanager
    def read(self) -> Iterator[Session]:
        """Open a read-only transaction. Writes in it fail."""
        with self._errors_in_our_words(), Session(self._reader, execution_options=_SESSION_OPTIONS) as session:
            yield session

    @contextmanager
    def glance(self) -> Iterator[Session]:
        """Open a session for queries that need no transaction. On PostgreSQL, it saves the two round trips of BEGIN and
        ROLLBACK.

        Writes are not prevented; callers must only read.
        """
        with self._errors_in_our_words(), Session(self._glancer, execution_options=_SESSION_OPTIONS) as session:
            yield session

    @contextmanager
    def snapshot(self) -> Iterator[Session]:
        """Open a read-only transaction in which every statement sees the same snapshot."""
        engine = self._reader
        if not self.is_sqlite:  # every read transaction of SQLite does
            engine = engine.execution_options(isolation_level="REPEATABLE READ")
        with self._errors_in_our_words(), Session(engine, execution_options=_SESSION_OPTIONS) as session:
            yield session

    @contextmanager
    def write(self) -> Iterator[Session]:
        """Open a write transaction: committed at the end, rolled back on an exception."""
        with (
            self._errors_in_our_words(),
            Session(self._writer, expire_on_commit=False, execution_options=_SESSION_OPTIONS) as session,
            session.begin(),
        ):
            yield session

    @contextmanager
    def write_lightly(self) -> Iterator[Session]:
        """Like `write`, but PostgreSQL does not wait until the commit is on disk: half of the time of a small one.

        If the server crashes, the commits of the last second may be lost, but nothing is damaged. For what repeats or
        can be missed: heartbeats and lines of a job's log.
        """
        with self.write() as session:
            if not self.is_sqlite:
                session.execute(text("SET LOCAL synchronous_commit = off"))
            yield session

    def write_again(self, work: Callable[[Session], T]) -> T:
        """Run a write transaction, and rerun it if PostgreSQL rolls it back to resolve a deadlock.

        Args:
            work: may run several times, so it must change nothing outside the session.

        Raises:
            DeadlockError: it was rolled back three times in a row.
        """
        for _ in range(_ATTEMPTS - 1):
            with suppress(DeadlockError), self.write() as session:
                return work(session)
        with self.write() as session:
            return work(session)

    def has_pooler(self) -> bool:
        """Return whether a connection pooler such as PgBouncer is between this process and PostgreSQL."""
        if self.is_sqlite:
            return False
        with self.read() as session:
            driver: Any = session.connection().connection.driver_connection
            return bool(driver.info.backend_pid != session.scalar(text("SELECT pg_backend_pid()")))

    def empty_log(self) -> None:
        """SQLite: remove older states of pages from the write-ahead log, unless a reader needs them."""
        self._outside_transactions("PRAGMA wal_checkpoint(TRUNCATE)")

    def use_log(self) -> None:
        """SQLite: turn on the write-ahead log (WAL), so that readers and a writer do not block each other. Stored in
        the file.
        """
        self._outside_transactions("PRAGMA journal_mode = WAL")

    def close_to_others(self, *, make: bool = False) -> None:
        """SQLite: make the file and its log readable by the owner only; `make` creates a missing file first."""
        if not self.is_sqlite:
            return
        file = Path(self.engine.url.database or "")
        logs = (file.with_name(f"{file.name}{ending}") for ending in ("-wal", "-shm"))
        with suppress(OSError):  # SQLite then reports the reason
            for path in (file, *logs):
                if path.exists() or (make and path == file):
                    private_file(path)

    def _outside_transactions(self, pragma: str) -> None:
        if self.is_sqlite:
            with self._errors_in_our_words(), closing(self.engine.raw_connection()) as connection:
                connection.cursor().execute(pragma)

    def dispose(self) -> None:
        """Close every connection."""
        self.engine.dispose()

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        self.dispose()

    def __repr__(self) -> str:
        return f"Database({self.engine.url.render_as_string(hide_password=True)!r})"

    @contextmanager
    def _errors_in_our_words(self) -> Iterator[None]:
        try:
            yield
        except (DataError, UnicodeEncodeError) as error:  # before DBAPIError, its base class
            raise InputError("value-not-storable") from error
        except NoneFreeError as error:
            raise UnavailableError("database-busy") from error
        except (DBAPIError, sqlite3.Error) as error:
            failure = failure_of(error, self.engine)
            if failure is None:
                raise
            raise failure from error


def allow_pauses(session: Session) -> None:
    """Allow this transaction to be idle while an artifact store responds, including its retries."""
    if session.get_bind().dialect.name != "sqlite":
        session.execute(text(f"SET LOCAL idle_in_transaction_session_timeout = '{PAUSED_TRANSACTION_SECONDS}s'"))


def overwrite_deleted(session: Session) -> None:
    """SQLite: overwrite deleted rows with zeros. PostgreSQL reuses the space by itself (autovacuum)."""
    if session.get_bind().dialect.name == "sqlite":
        session.execute(text("PRAGMA secure_delete = ON"))


def _engine(url: str, foreign_keys: bool) -> Engine:
    try:
        parsed = make_url(url)
    except (ArgumentError, ValueError):
        raise _unusable(url) from None  # SQLAlchemy's message may quote a password
    if parsed.get_backend_name() == "sqlite":
        engine = create_engine(parsed, connect_args={"timeout": BUSY_SECONDS, "isolation_level": None})
        if foreign_keys:
            event.listen(engine, "connect", _enforce_foreign_keys)
        event.listen(engine, "begin", _begin_sqlite)
        return engine
    if parsed.get_backend_name() == "postgresql":
        require_usable(parsed)
        pooled = NO_PREPARED_STATEMENTS in parsed.query
        engine = create_engine(
            parsed.set(drivername="postgresql+psycopg").difference_update_query([NO_PREPARED_STATEMENTS]),
            pool_pre_ping=True,
            connect_args={
                "client_encoding": "utf8",
                **({"prepare_threshold": None} if pooled else {}),
                "connect_timeout": CONNECT_SECONDS,
                # Never a replica: it lags behind, so an alias may have moved long ago.
                "target_session_attrs": "primary",
                # Detect a vanished server within about 30 seconds.
                "keepalives_idle": 10,
                "keepalives_interval": 5,
                "keepalives_count": 3,
                "tcp_user_timeout": 30_000,
            },
        )
        event.listen(engine, "connect", _require_utf8)
        if pooled:  # a session setting may carry over to another client
            event.listen(engine, "begin", _bound_idle_transaction)
        else:
            event.listen(engine, "connect", _bound_idle_transactions)
        return engine
    raise _unusable(url)


def _unusable(url: str) -> InputError:
    scheme, mark, _ = url.partition("://")
    named = repr(scheme) if mark else "The value of ONBOARD_DATABASE_URL"  # the whole value may be a password
    return InputError("database-url-unusable", named=named)


def _enforce_foreign_keys(connection: sqlite3.Connection, record: Any) -> None:  # noqa: ARG001 - the event's signature
    connection.execute("PRAGMA foreign_keys = ON")


def _bound_idle_transactions(connection: Any, record: Any) -> None:  # noqa: ARG001 - the event's signature
    """Limit idle transactions, so that a process that hangs releases its locks."""
    connection.autocommit = True
    connection.execute(f"SET idle_in_transaction_session_timeout = '{IDLE_TRANSACTION_SECONDS}s'")
    connection.autocommit = False


def _bound_idle_transaction(connection: Connection) -> None:
    """Limit the idle time of one transaction."""
    if connection.get_execution_options().get("isolation_level") != "AUTOCOMMIT":
        connection.exec_driver_sql(f"SET LOCAL idle_in_transaction_session_timeout = '{IDLE_TRANSACTION_SECONDS}s'")


def _require_utf8(connection: Any, record: Any) -> None:  # noqa: ARG001 - the event's signature
    """Refuse other encodings: they reject some texts, or (SQL_ASCII) accept any bytes."""
    encoding = connection.info.parameter_status("server_encoding")
    if encoding not in ("UTF8", None):
        name = connection.info.dbname
        raise ConflictError("database-encoding-wrong", encoding=encoding, name=name)


def _begin_sqlite(connection: Connection) -> None:
    writes = bool(connection.get_execution_options().get(_WRITES))
    connection.exec_driver_sql(f"PRAGMA query_only = {'OFF' if writes else 'ON'}")
    connection.exec_driver_sql("BEGIN IMMEDIATE" if writes else "BEGIN DEFERRED")
