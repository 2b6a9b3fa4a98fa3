"""The rounds that one worker of a deployment makes for all."""

from __future__ import annotations

import pytest

from onboard.errors import InputError
from onboard.registry.database import Database
from onboard.testing import MemoryDoorbell
from workers.reconciler import reconcile


def test_a_worker_without_the_lease_only_reads(database: Database, monkeypatch: pytest.MonkeyPatch) -> None:
    assert reconcile(database, MemoryDoorbell(), "w1", lease_seconds=60)

    def write() -> None:
        raise InputError("a write forces the log to disk, every few seconds, of every worker")

    monkeypatch.setattr(database, "write", write)
    assert not reconcile(database, MemoryDoorbell(), "w2", lease_seconds=60)


def test_an_expired_lease_goes_to_the_next_worker(database: Database) -> None:
    assert reconcile(database, MemoryDoorbell(), "w1", lease_seconds=0)
    assert reconcile(database, MemoryDoorbell(), "w2", lease_seconds=60)
    assert not reconcile(database, MemoryDoorbell(), "w1", lease_seconds=60)
