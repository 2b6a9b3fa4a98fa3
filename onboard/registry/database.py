"""The database: one engine, `read()` and `write()` transactions, and its failures said in our own words.

SQLite: WAL, `BEGIN IMMEDIATE` for writes and `BEGIN DEFERRED` for reads. The driver's own transactions would start with
a read lock and lose updates when two of them turn to writing.
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
IDLE_TRANSACTION_SECONDS: Final = 30  # PostgreSQL ends a session that leaves a transaction open for so long
PAUSED_TRANSACTION_SECONDS: Final = 900  # the same where the transaction waits for an artifact store
CONNECT_SECONDS: Final = 5  # how long a connection to PostgreSQL may take
_ATTEMPTS: Final = 3  # of a transaction that the server undoes to end a deadlock
_WRITES: Final = "onboard_writes"
_SESSION_OPTIONS: Final = {"populate_existing": True, "synchronize_session": False}
T = TypeVar("T")


class Database:
    """A SQLite or PostgreSQL database with the registry's tables. Cheap to make; connects when first used.

    Args:
        url: SQLAlchemy URL: `sqlite:////path/file.db` or `postgresql+psycopg://user:secret@host/name`.
        foreign_keys: whether SQLite enforces them; off only while migrating, where tables are rebuilt.

    Raises:
        InputError: the URL is not one, or names another kind of database.
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
        """A read-only transaction; writing in it fails."""
        with self._errors_in_our_words(), Session(self._reader, execution_options=_SESSION_OPTIONS) as session:
            yield session

    @contextmanager
    def glance(self) -> Iterator[Session]:
        """For one query that every request asks: on PostgreSQL no BEGIN and ROLLBACK, two round trips less.

        Nothing but the caller's care keeps it from writing there.
        """
        with self._errors_in_our_words(), Session(self._glancer, execution_options=_SESSION_OPTIONS) as session:
            yield session

    @contextmanager
    def snapshot(self) -> Iterator[Session]:
        """A read-only transaction in which every statement sees the same moment."""
        engine = self._reader
        if not self.is_sqlite:  # there every read transaction does
            engine = engine.execution_options(isolation_level="REPEATABLE READ")
        with self._errors_in_our_words(), Session(engine, execution_options=_SESSION_OPTIONS) as session:
            yield session

    @contextmanager
    def write(self) -> Iterator[Session]:
        """A writing transaction: committed at the end, rolled back when an exception passes."""
        with (
            self._errors_in_our_words(),
            Session(self._writer, expire_on_commit=False, execution_options=_SESSION_OPTIONS) as session,
            session.begin(),
        ):
            yield session

    def write_again(self, work: Callable[[Session], T]) -> T:
        """A writing transaction that begins anew where PostgreSQL undid it to end a deadlock.

        Args:
            work: what is done in it; perhaps several times, so it leaves nothing behind but in the session.

        Raises:
            DeadlockError: it was undone three times running.
        """
        for _ in range(_ATTEMPTS - 1):
            with suppress(DeadlockError), self.write() as session:
                return work(session)
        with self.write() as session:
            return work(session)

    def has_pooler(self) -> bool:
        """Whether something stands between us and PostgreSQL that has sessions of its own, such as PgBouncer."""
        if self.is_sqlite:
            return False
        with self.read() as session:
            driver: Any = session.connection().connection.driver_connection
            return bool(driver.info.backend_pid != session.scalar(text("SELECT pg_backend_pid()")))

    def empty_log(self) -> None:
        """SQLite: let no older state of a page stay in the log of writes, as far as no reader needs it just now."""
        self._outside_transactions("PRAGMA wal_checkpoint(TRUNCATE)")

    def use_log(self) -> None:
        """SQLite: a log of writes (WAL), so that readers and a writer do not wait for one another; set once a file."""
        self._outside_transactions("PRAGMA journal_mode = WAL")

    def close_to_others(self, *, make: bool = False) -> None:
        """SQLite: let the owner alone read the file and its log, and with `make` a file that is not there yet."""
        if not self.is_sqlite:
            return
        file = Path(self.engine.url.database or "")
        logs = (file.with_name(f"{file.name}{ending}") for ending in ("-wal", "-shm"))
        with suppress(OSError):  # then SQLite itself says why it cannot
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
        except (DataError, UnicodeEncodeError) as error:  # before DBAPIError, which DataError is
            raise InputError("value-not-storable") from error
        except NoneFreeError as error:
            raise UnavailableError("database-busy") from error
        except (DBAPIError, sqlite3.Error) as error:
            failure = failure_of(error, self.engine)
            if failure is None:
                raise
            raise failure from error


def allow_pauses(session: Session) -> None:
    """Let this transaction stand idle for as long as an object store may take, which tries several times."""
    if session.get_bind().dialect.name != "sqlite":
        session.execute(text(f"SET LOCAL idle_in_transaction_session_timeout = '{PAUSED_TRANSACTION_SECONDS}s'"))


def overwrite_deleted(session: Session) -> None:
    """SQLite: write zeros where deleted rows stood. PostgreSQL gives the place away by itself (autovacuum)."""
    if session.get_bind().dialect.name == "sqlite":
        session.execute(text("PRAGMA secure_delete = ON"))


def _engine(url: str, foreign_keys: bool) -> Engine:
    try:
        parsed = make_url(url)
    except (ArgumentError, ValueError):
        raise _unusable(url) from None  # what SQLAlchemy says may quote a password
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
                # a replica lags behind: an alias read there may be one that was moved back long ago
                "target_session_attrs": "primary",
                # a server that vanished without a word is noticed within about half a minute
                "keepalives_idle": 10,
                "keepalives_interval": 5,
                "keepalives_count": 3,
                "tcp_user_timeout": 30_000,
            },
        )
        event.listen(engine, "connect", _require_utf8)
        if pooled:  # what is set for a session may be another client's next
            event.listen(engine, "begin", _bound_idle_transaction)
        else:
            event.listen(engine, "connect", _bound_idle_transactions)
        return engine
    raise _unusable(url)


def _unusable(url: str) -> InputError:
    scheme, mark, _ = url.partition("://")
    named = repr(scheme) if mark else "The value of ONBOARD_DATABASE_URL"  # which may be all password
    return InputError("database-url-unusable", named=named)


def _enforce_foreign_keys(connection: sqlite3.Connection, record: Any) -> None:  # noqa: ARG001 - the event's signature
    connection.execute("PRAGMA foreign_keys = ON")


def _bound_idle_transactions(connection: Any, record: Any) -> None:  # noqa: ARG001 - the event's signature
    """A process that hangs in the midst of a transaction must not keep its locks from everybody else."""
    connection.autocommit = True
    connection.execute(f"SET idle_in_transaction_session_timeout = '{IDLE_TRANSACTION_SECONDS}s'")
    connection.autocommit = False


def _bound_idle_transaction(connection: Connection) -> None:
    """The same for one transaction."""
    if connection.get_execution_options().get("isolation_level") != "AUTOCOMMIT":
        connection.exec_driver_sql(f"SET LOCAL idle_in_transaction_session_timeout = '{IDLE_TRANSACTION_SECONDS}s'")


def _require_utf8(connection: Any, record: Any) -> None:  # noqa: ARG001 - the event's signature
    """Another encoding refuses some texts, or (SQL_ASCII) takes any bytes for text."""
    encoding = connection.info.parameter_status("server_encoding")
    if encoding not in ("UTF8", None):
        name = connection.info.dbname
        raise ConflictError("database-encoding-wrong", encoding=encoding, name=name)


def _begin_sqlite(connection: Connection) -> None:
    writes = bool(connection.get_execution_options().get(_WRITES))
    connection.exec_driver_sql(f"PRAGMA query_only = {'OFF' if writes else 'ON'}")
    connection.exec_driver_sql("BEGIN IMMEDIATE" if writes else "BEGIN DEFERRED")
