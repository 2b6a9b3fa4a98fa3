"""Copy artifacts between stores and backups, in parallel and verified. Intact copies are skipped."""

from __future__ import annotations

import time
from collections.abc import Callable, Iterable, Iterator
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass, field
from itertools import islice
from typing import Any, Final, Protocol, TypeVar

from onboard.errors import DamagedError, NotFoundError

Row = dict[str, Any]
Tell = Callable[[str], None]
_Result = TypeVar("_Result")
_THREADS: Final = 8  # an object store takes tens of milliseconds per request, whatever the size
_BATCH: Final = 64
_TELL_SECONDS: Final = 5.0


class BlobStore(Protocol):
    """A store of artifacts: the service's store or a backup."""

    def get(self, digest: str) -> bytes:
        """Return the bytes of a digest, verified. Raises NotFoundError or DamagedError."""

    def intact(self, digest: str) -> bool:
        """Return whether bytes of this digest exist and match it."""

    def put(self, data: bytes, kind: str) -> str:
        """Store bytes and return their digest."""


@dataclass
class Transferred:
    """The result of a transfer.

    Args:
        copied: how many artifacts were written; `copied_bytes` is their size.
        present: how many existed already and were intact.
        absent: those that the source has lost, each with its kind and problem: "missing" or "damaged".
    """

    copied: int = 0
    copied_bytes: int = 0
    present: int = 0
    absent: list[Row] = field(default_factory=list)


def transfer(
    rows: Iterable[Row], source: BlobStore, target: BlobStore, tell: Tell, keep: Callable[[], None] = lambda: None
) -> Transferred:
    """Copy artifacts.

    Args:
        rows: rows of the artifacts, with digest and kind.
        tell: receives progress messages.
        keep: called regularly to renew the maintenance lock.

    Raises:
        StorageError, NotAllowedError: the target cannot be written, or either cannot be reached.
    """
    done = Transferred()

    def copy(row: Row) -> int | str | None:
        if target.intact(row["digest"]):
            return None
        data = _read(row, source)
        if isinstance(data, str):
            return data
        target.put(data, row["kind"])
        return len(data)

    for row, outcome in _outcomes(rows, copy, tell, "copied", keep):
        if outcome is None:
            done.present += 1
        elif isinstance(outcome, str):
            done.absent.append(_lost(row, outcome))
        else:
            done.copied += 1
            done.copied_bytes += outcome
    return done


def missing_there(rows: Iterable[Row], source: BlobStore, target: BlobStore, tell: Tell) -> tuple[list[Row], list[Row]]:
    """Determine, without copying, which artifacts would be copied.

    Returns:
        The rows of artifacts that the target lacks, and those that the source has lost (as `Transferred.absent`).
    """
    needed, lost = [], []

    def look(row: Row) -> str | bool:
        if target.intact(row["digest"]):
            return False
        data = _read(row, source)
        return data if isinstance(data, str) else True

    for row, outcome in _outcomes(rows, look, tell, "checked"):
        if isinstance(outcome, str):
            lost.append(_lost(row, outcome))
        elif outcome:
            needed.append(row)
    return needed, lost


def _outcomes(
    rows: Iterable[Row],
    act: Callable[[Row], _Result],
    tell: Tell,
    what: str,
    keep: Callable[[], None] = lambda: None,
) -> Iterator[tuple[Row, _Result]]:
    count, told_at, remaining = 0, time.monotonic(), iter(rows)
    with ThreadPoolExecutor(_THREADS, "transfer") as pool:
        while batch := list(islice(remaining, _BATCH)):
            keep()
            yield from zip(batch, pool.map(act, batch), strict=True)
            count += len(batch)
            if time.monotonic() - told_at > _TELL_SECONDS:
                told_at = time.monotonic()
                tell(f"artifacts: {count} {what}")


def _read(row: Row, source: BlobStore) -> bytes | str:
    """Return the bytes, or the problem with them."""
    try:
        return source.get(row["digest"])
    except NotFoundError:
        return "missing"
    except DamagedError:
        return "damaged"


def _lost(row: Row, problem: str) -> Row:
    return {"digest": row["digest"], "kind": row["kind"], "problem": problem}
