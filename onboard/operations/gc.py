"""Use case: delete unused data, and report required data that is missing.

A row is written before its bytes, and bytes are deleted while their row is locked. A process that starts to use an
artifact at that moment either finds it or writes it again. Versions of tasks and the artifacts that they name are never
deleted. For a hypernetwork that no version needs any more, only the bytes are deleted, and its row records that.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Iterator
from contextlib import AbstractContextManager, contextmanager, nullcontext
from dataclasses import dataclass, field
from itertools import islice
from typing import TYPE_CHECKING, Any, Final

from onboard.contract.upkeep import Amount, GarbageDocument
from onboard.operations.lock import alone
from onboard.operations.retention import OLD_HOURS, Step, steps
from onboard.registry.artifacts import ArtifactRecord, ArtifactRepository
from onboard.registry.retention import RetentionRepository
from onboard.registry.services import Services
from onboard.storage.files import ListedFile

if TYPE_CHECKING:
    from sqlalchemy.orm import Session

    Transaction = Callable[[], AbstractContextManager[Session]]

_BATCH: Final = 500  # artifacts per transaction; object stores delete up to 1000 per request
_HOUR_SECONDS: Final = 3600.0


@dataclass
class _Counter:
    """A growing number of items and their total bytes."""

    count: int = 0
    size_bytes: int = 0

    def add(self, size_bytes: int) -> None:
        """Count one more item."""
        self.count += 1
        self.size_bytes += size_bytes


@dataclass
class Garbage:
    """The result of a garbage collection; in a dry run, what it would be.

    Args:
        artifacts: freed artifacts by kind; "unknown" are bytes without a row.
        rows: deleted rows by table; for "hypernetworks", the number with deleted bytes.
        unfinished: files that killed processes left behind.
        damaged: required artifacts with missing bytes or another size. They are not changed.
        foreign: bytes without a row that were kept, because they outnumber those with one.
        known: how many stored artifacts have a row.
    """

    dry_run: bool
    older_than_hours: float
    artifacts: dict[str, _Counter] = field(default_factory=dict)
    rows: dict[str, int] = field(default_factory=dict)
    unfinished: _Counter = field(default_factory=_Counter)
    damaged: list[dict[str, Any]] = field(default_factory=list)
    foreign: _Counter = field(default_factory=_Counter)
    known: int = 0

    @property
    def freed(self) -> Amount:
        """The deleted files of all kinds."""
        every = [*self.artifacts.values(), self.unfinished]
        return Amount(count=sum(one.count for one in every), size_bytes=sum(one.size_bytes for one in every))

    def to_document(self) -> GarbageDocument:
        """Return the document of `onboard gc --json`."""
        artifacts = {kind: Amount.of(amount) for kind, amount in sorted(self.artifacts.items())}
        return GarbageDocument.of(
            self, artifacts=artifacts, unfinished=Amount.of(self.unfinished), foreign=Amount.of(self.foreign)
        )


@dataclass
class _Survey:
    """The result of scanning the whole store."""

    unknown: dict[str, ListedFile] = field(default_factory=dict)
    unfinished: list[tuple[str, list[ListedFile]]] = field(default_factory=list)
    suspects: list[ArtifactRecord] = field(default_factory=list)
    known: int = 0

    def compare(self, rows: dict[str, ArtifactRecord], stored: dict[str, ListedFile]) -> None:
        """Add bytes without a row, and required artifacts that are missing or have another size."""
        self.known += len(stored.keys() & rows.keys())
        self.unknown |= {digest: entry for digest, entry in stored.items() if digest not in rows}
        for digest, record in rows.items():
            if record.referenced and (digest not in stored or stored[digest].size_bytes != record.size_bytes):
                self.suspects.append(record)


def collect_garbage(services: Services, *, older_than_hours: float = OLD_HOURS, dry_run: bool = False) -> Garbage:
    """Delete rows that the retention settings no longer keep, then every unused artifact.

    Args:
        older_than_hours: newer data is kept, because a submit or a job may be about to refer to it.
        dry_run: only count. All changes to the database are rolled back, and files are not touched.

    Raises:
        ConflictError: a backup or another garbage collection is running.
        StorageError, UnavailableError: store or database cannot be reached; earlier deletions remain.
    """
    garbage = Garbage(dry_run, older_than_hours)
    with alone(services.database, "gc") as keep:
        survey = _look_around(services, older_than_hours * _HOUR_SECONDS, keep)
        garbage.known = survey.known
        with _transactions(services, dry_run) as transaction:
            # A dry run is one short transaction, in which SQLite cannot renew the lease.
            work = _Work(services, garbage, transaction, (lambda: None) if dry_run else keep)
            work.apply_retention()
            work.adopt(survey.unknown)
            work.sweep()
            work.name_damaged(survey.suspects)
        for shard, entries in survey.unfinished:
            for entry in entries:
                garbage.unfinished.add(entry.size_bytes)
            if not dry_run:
                services.artifacts.delete_unfinished(shard, entries)
    return garbage


@contextmanager
def _transactions(services: Services, dry_run: bool) -> Iterator[Transaction]:
    """Yield a function that makes short transactions; in a dry run, one transaction that is rolled back."""
    if not dry_run:
        yield services.database.write
        return
    with services.database.write() as session:
        yield lambda: nullcontext(session)
        session.rollback()


def _look_around(services: Services, older_than_seconds: float, keep: Callable[[], None]) -> _Survey:
    """Compare rows and bytes, one sixteenth at a time. Rows are read first, so newer bytes already have a row."""
    survey, store, old = _Survey(), services.artifacts, time.time() - older_than_seconds
    shards = sorted(store.shards())
    for start in "0123456789abcdef":
        keep()
        with services.database.read() as session:
            rows = {record.digest: record for record in ArtifactRepository(session).beginning_with(start)}
        stored: dict[str, ListedFile] = {}
        for shard in (shard for shard in shards if shard.startswith(start)):
            stored |= store.in_shard(shard)
            unfinished = [entry for entry in store.unfinished(shard) if entry.modified_at <= old]
            survey.unfinished.append((shard, unfinished))
        settled = {digest: entry for digest, entry in stored.items() if digest in rows or entry.modified_at <= old}
        survey.compare(rows, settled)
    return survey


@dataclass
class _Work:
    """The steps that change something.

    Args:
        keep: renews the maintenance lock.
    """

    services: Services
    garbage: Garbage
    transaction: Transaction
    keep: Callable[[], None]

    def apply_retention(self) -> None:
        """Delete rows that the settings no longer keep, then unused hypernetworks and datasets."""
        for table, step in steps(self.services.settings, self.garbage.older_than_hours).items():
            self._delete(table, step)
        older_than_seconds = self.garbage.older_than_hours * _HOUR_SECONDS
        self._delete("hypernetworks", lambda rows: rows.hypernetworks(older_than_seconds))
        self._delete("snapshots", lambda rows: rows.snapshots())

    def _delete(self, table: str, step: Step) -> None:
        self.garbage.rows[table] = 0
        while True:
            self.keep()
            with self.transaction() as session:
                removed = step(RetentionRepository(session))
            if not removed:
                return
            self.garbage.rows[table] += removed

    def adopt(self, unknown: dict[str, ListedFile]) -> None:
        """Add rows for bytes without one, so that they are collected; not if they seem to belong to somebody else."""
        if len(unknown) > self.garbage.known:
            self.garbage.foreign = _Counter(len(unknown), sum(entry.size_bytes for entry in unknown.values()))
            return
        entries = iter(unknown.items())
        while batch := list(islice(entries, _BATCH)):
            self.keep()
            with self.transaction() as session:
                for digest, entry in batch:
                    ArtifactRepository(session).adopt(digest, entry.size_bytes, entry.modified_at)

    def sweep(self) -> None:
        """Delete rows and, before their locks are released, bytes. After a failure the rows remain, and the next run
        continues.
        """
        older_than_seconds = self.garbage.older_than_hours * _HOUR_SECONDS
        while True:
            self.keep()
            with self.transaction() as session:
                collected = ArtifactRepository(session).collect(older_than_seconds, _BATCH)
                if not self.garbage.dry_run:
                    self.services.artifacts.delete(*(record.digest for record in collected))
            if not collected:
                return
            for record in collected:
                self.garbage.artifacts.setdefault(record.kind, _Counter()).add(record.size_bytes)

    def name_damaged(self, suspects: list[ArtifactRecord]) -> None:
        """Check suspected artifacts again, because they may have been written or become unused since."""
        for record in suspects:
            with self.transaction() as session:
                users = ArtifactRepository(session).users(record.digest)
            size = self.services.artifacts.size_bytes(record.digest)
            if users and size != record.size_bytes:
                problem = "missing" if size is None else f"{size} bytes instead of {record.size_bytes}"
                facts = {"digest": record.digest, "kind": record.kind, "problem": problem, "used_by": users}
                self.garbage.damaged.append(facts)
