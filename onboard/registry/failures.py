"""Convert database errors to Onboard's errors, with a remedy."""

from __future__ import annotations

import shutil
import sqlite3
from pathlib import Path
from typing import Final

from sqlalchemy import Engine
from sqlalchemy.exc import DBAPIError, InterfaceError, OperationalError

from onboard.errors import (
    DamagedError,
    DeadlockError,
    NotAllowedError,
    OnboardError,
    StorageError,
    UnavailableError,
)

_FEW_BYTES: Final = 1 << 20  # with less free space SQLite's auxiliary files cannot grow
_NO_DATABASE: Final = (sqlite3.SQLITE_NOTADB, sqlite3.SQLITE_CORRUPT)
_NO_FILE: Final = (sqlite3.SQLITE_IOERR, sqlite3.SQLITE_CANTOPEN)
_LOST_STATEMENTS: Final = ("26000", "42P05", "08P01")  # a prepared statement is missing or exists already
_DISK_FULL, _DEADLOCK, _FORBIDDEN, _READ_ONLY, _DAMAGED = "53100", "40P01", "42501", "25006", "XX001 XX002"
_LOCKED: Final = "55P03"  # a lock was not available in time


def failure_of(error: DBAPIError | sqlite3.Error, engine: Engine) -> OnboardError | None:
    """Convert a database error. HTTP clients do not see the location of the database.

    None if the database works: the statement was wrong, or violated a constraint.
    """
    failure = _of_sqlite(error, engine) if engine.dialect.name == "sqlite" else _of_postgresql(error, engine)
    if failure is None or isinstance(failure, DeadlockError):
        return failure
    if isinstance(failure, StorageError):
        return failure.hide(StorageError("database-disk-full"))
    if isinstance(failure, DamagedError):
        return failure.hide(DamagedError("database-damaged"))
    return failure.hide(UnavailableError("database-unreachable"))


def _of_sqlite(error: DBAPIError | sqlite3.Error, engine: Engine) -> OnboardError | None:
    file, original = str(engine.url.database), error.orig if isinstance(error, DBAPIError) else error
    reason = str(original).strip()
    code = getattr(original, "sqlite_errorcode", 0) & 0xFF  # without SQLite's extended codes
    if code == sqlite3.SQLITE_FULL or (code in _NO_FILE and _is_full(file)):
        return StorageError("database-disk-full-at", file=file)
    if code in _NO_DATABASE:
        return DamagedError("sqlite-damaged", file=file, reason=reason)
    if code in (sqlite3.SQLITE_READONLY, sqlite3.SQLITE_CANTOPEN, sqlite3.SQLITE_PERM):
        return NotAllowedError("sqlite-forbidden", file=file, reason=reason)
    if code == sqlite3.SQLITE_IOERR:
        return UnavailableError("sqlite-disk-failed", file=file, reason=reason)
    if code == sqlite3.SQLITE_BUSY or _is_away(error):
        return UnavailableError("sqlite-unusable", file=file, reason=reason)
    return None


def _is_full(file: str) -> bool:
    """Return whether the disk is full. SQLite reports that as an I/O error if its shared memory cannot grow."""
    try:
        return shutil.disk_usage(Path(file).parent).free < _FEW_BYTES
    except OSError:
        return False


def _is_away(error: DBAPIError | sqlite3.Error) -> bool:
    if isinstance(error, DBAPIError):
        return error.connection_invalidated or isinstance(error, (OperationalError, InterfaceError))
    return isinstance(error, (sqlite3.OperationalError, sqlite3.InterfaceError))


def _of_postgresql(error: DBAPIError | sqlite3.Error, engine: Engine) -> OnboardError | None:
    original = error.orig if isinstance(error, DBAPIError) else error
    place = engine.url.render_as_string(hide_password=True)
    lines, code = str(original).strip().splitlines(), getattr(original, "sqlstate", None) or "-"
    reason = lines[0] if lines else str(error)
    if code == _DEADLOCK:
        return DeadlockError("database-deadlock")
    if code == _LOCKED:
        return DeadlockError("database-locked")
    if code in _LOST_STATEMENTS and "prepared statement" in reason:
        return UnavailableError("database-pooler-statements", place=place, reason=reason)
    if "statement pooling mode" in reason:
        return UnavailableError("database-pooler-mode", place=place, reason=reason)
    if code == _DISK_FULL:
        return StorageError("database-server-disk-full", place=place, reason=reason)
    if code in _DAMAGED:
        return DamagedError("database-server-damaged", place=place, reason=reason)
    if code == _FORBIDDEN:
        return NotAllowedError(
            "database-right-missing",
            place=place,
            reason=reason,
            database=engine.url.database,
            username=engine.url.username,
        )
    if code == _READ_ONLY or any("in hot standby mode" in line for line in lines):
        return UnavailableError("database-read-only", place=place, reason=reason)
    if any("password authentication failed" in line or "no password supplied" in line for line in lines):
        return UnavailableError("database-password-wrong", place=place)
    if not _is_away(error):
        return None
    return UnavailableError("database-unreachable-at", place=place, reason=reason)
