"""Use case: delete what nothing needs any more, and say what is needed and lost.

A row is written before its bytes, and bytes are deleted while their row is locked, so that whoever starts to use an
artifact at that very moment either finds it, or writes it anew. Versions of tasks and what they name are never deleted;
a hypernetwork that no version needs any more gives up its bytes, and its row says so.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Iterator
from contextlib import AbstractContextManager, contextmanager, nullcontext
from dataclasses import dataclass, field
from itertools import islice
from typing import TYPE_CHECKING, Any, Final

from onboard.operations.lock import alone
from onboard.operations.retention import OLD_HOURS, Step, steps
from onboard.registry.artifacts import ArtifactRecord, ArtifactRepository
from onboard.registry.retention import RetentionRepository
from onboard.registry.services import Services
from onboard.storage.files import Entry

if TYPE_CHECKING:
    from sqlalchemy.orm import Session

    Transaction = Callable[[], AbstractContextManager[Session]]

_BATCH: Final = 500  # artifacts in one transaction; object stores delete up to 1000 by one request
_HOUR_SECONDS: Final = 3600.0


@dataclass
class Amount:
    """So many things of so many bytes."""

    count: int = 0
    size_bytes: int = 0

    def add(self, size_bytes: int) -> None:
        """One more."""
        self.count += 1
        self.size_bytes += size_bytes

    def to_json(self) -> dict[str, int]:
        """The amount as a JSON-compatible document."""
        return {"count": self.count, "bytes": self.size_bytes}


@dataclass
class Garbage:
    """What was freed (or, in a dry run, would be), and what was found on the way.

    Args:
        artifacts: freed, by kind; "unknown" are bytes that had no row.
        rows: deleted, by table; of "hypernetworks" those whose bytes were given up.
        unfinished: files that a killed writer left.
        damaged: artifacts that are needed, and whose bytes are missing or of another size; they are left as they are.
        foreign: bytes without a row that were left alone, because they outnumber those with one.
        known: how many stored artifacts have a row.
    """

    dry_run: bool
    older_than_hours: float
    artifacts: dict[str, Amount] = field(default_factory=dict)
    rows: dict[str, int] = field(default_factory=dict)
    unfinished: Amount = field(default_factory=Amount)
    damaged: list[dict[str, Any]] = field(default_factory=list)
    foreign: Amount = field(default_factory=Amount)
    known: int = 0

    @property
    def freed(self) -> Amount:
        """Files that are gone, of all kinds."""
        every = [*self.artifacts.values(), self.unfinished]
        return Amount(sum(amount.count for amount in every), sum(amount.size_bytes for amount in every))

    def to_json(self) -> dict[str, Any]:
        """The result of `onboard gc --json`."""
        return {
            "dry_run": self.dry_run,
            "older_than_hours": self.older_than_hours,
            "freed": self.freed.to_json(),
            "artifacts": {kind: amount.to_json() for kind, amount in sorted(self.artifacts.items())},
            "unfinished": self.unfinished.to_json(),
            "rows": self.rows,
            "damaged": self.damaged,
            "foreign": self.foreign.to_json(),
        }


@dataclass
class _Survey:
    """What a look at the whole store brought."""

    unknown: dict[str, Entry] = field(default_factory=dict)
    unfinished: list[tuple[str, list[Entry]]] = field(default_factory=list)
    suspects: list[ArtifactRecord] = field(default_factory=list)
    known: int = 0

    def compare(self, rows: dict[str, ArtifactRecord], stored: dict[str, Entry]) -> None:
        """Add what is stored without a row, and what is needed and not stored as its row says."""
        self.known += len(stored.keys() & rows.keys())
        self.unknown |= {digest: entry for digest, entry in stored.items() if digest not in rows}
        for digest, record in rows.items():
            if record.referenced and (digest not in stored or stored[digest].size_bytes != record.size_bytes):
                self.suspects.append(record)


def collect_garbage(services: Services, *, older_than_hours: float = OLD_HOURS, dry_run: bool = False) -> Garbage:
    """Delete what the retention settings no longer keep, then every artifact that nothing needs.

    Args:
        older_than_hours: what was announced or written later than so long ago stays: a submit or a job may be about
            to refer to it.
        dry_run: only count: every change to the database is rolled back, no file is touched.

    Raises:
        ConflictError: a backup or another garbage collection is at work.
        StorageError, UnavailableError: store or database cannot be reached; what was freed until then is freed.
    """
    garbage = Garbage(dry_run, older_than_hours)
    with alone(services.database, "gc") as keep:
        seen = _look_around(services, older_than_hours * _HOUR_SECONDS, keep)
        garbage.known = seen.known
        with _transactions(services, dry_run) as transaction:
            # a dry run holds one transaction, in which SQLite cannot also renew the right; it is over soon
            work = _Work(services, garbage, transaction, (lambda: None) if dry_run else keep)
            work.apply_retention()
            work.adopt(seen.unknown)
            work.sweep()
            work.name_damaged(seen.suspects)
        for shard, entries in seen.unfinished:
            for entry in entries:
                garbage.unfinished.add(entry.size_bytes)
            if not dry_run:
                services.artifacts.delete_unfinished(shard, entries)
    return garbage


@contextmanager
def _transactions(services: Services, dry_run: bool) -> Iterator[Transaction]:
    """Makes short transactions; of a dry run one that is rolled back, so that it counts exactly what would happen."""
    if not dry_run:
        yield services.database.write
        return
    with services.database.write() as session:
        yield lambda: nullcontext(session)
        session.rollback()


def _look_around(services: Services, older_than_seconds: float, keep: Callable[[], None]) -> _Survey:
    """Compare rows and bytes, a sixteenth at a time. Rows are read first: what is stored later has its row by then."""
    survey, store, old = _Survey(), services.artifacts, time.time() - older_than_seconds
    shards = sorted(store.shards())
    for start in "0123456789abcdef":
        keep()
        with services.database.read() as session:
            rows = {record.digest: record for record in ArtifactRepository(session).beginning_with(start)}
        stored: dict[str, Entry] = {}
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
        transaction: makes a transaction of the database.
        keep: keeps the right to do maintenance.
    """

    services: Services
    garbage: Garbage
    transaction: Transaction
    keep: Callable[[], None]

    def apply_retention(self) -> None:
        """Delete rows that the settings no longer keep; then give up hypernetworks and datasets that nothing needs."""
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

    def adopt(self, unknown: dict[str, Entry]) -> None:
        """Rows for bytes without one, so that they are swept like all others; unless they look like somebody else's."""
        if len(unknown) > self.garbage.known:
            self.garbage.foreign = Amount(len(unknown), sum(entry.size_bytes for entry in unknown.values()))
            return
        entries = iter(unknown.items())
        while batch := list(islice(entries, _BATCH)):
            self.keep()
            with self.transaction() as session:
                for digest, entry in batch:
                    ArtifactRepository(session).adopt(digest, entry.size_bytes, entry.modified_at)

    def sweep(self) -> None:
        """Delete rows and, before their locks are released, bytes. A failure keeps the rows; the next run goes on."""
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
                self.garbage.artifacts.setdefault(record.kind, Amount()).add(record.size_bytes)

    def name_damaged(self, suspects: list[ArtifactRecord]) -> None:
        """Look again at what seemed to be missing: it may have been written, or become needless, since."""
        for record in suspects:
            with self.transaction() as session:
                users = ArtifactRepository(session).users(record.digest)
            size = self.services.artifacts.size_bytes(record.digest)
            if users and size != record.size_bytes:
                problem = "missing" if size is None else f"{size} bytes instead of {record.size_bytes}"
                facts = {"digest": record.digest, "kind": record.kind, "problem": problem, "used_by": users}
                self.garbage.damaged.append(facts)
