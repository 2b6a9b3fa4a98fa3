"""Use cases: the line of a base's hypernetworks, one version with all that stands under it, and going back to one."""

from __future__ import annotations

from typing import Final

from onboard.contract.guard import GuardVerdict
from onboard.contract.hypernetworks import (
    HypernetworkDetail,
    HypernetworkDocument,
    HypernetworkList,
    HypernetworkReverted,
    PinnedDocument,
)
from onboard.errors import NotFoundError
from onboard.registry.audit import record
from onboard.registry.bases import BaseRepository
from onboard.registry.database import Database
from onboard.registry.hypernetworks import HypernetworkRepository

MOST_NAMED: Final = 200  # versions in use that are named; all of them are counted


def list_hypernetworks(database: Database, base: str) -> HypernetworkList:
    """The line of a base, oldest first, and how many embedding versions are pinned to each.

    Args:
        base: its name or digest.

    Raises:
        NotFoundError: no such base is registered.
    """
    with database.read() as session:
        bases = BaseRepository(session)
        record = bases.get(base)
        line = bases.hypernetworks(record.digest)
        counts = HypernetworkRepository(session).counts(record.digest)
    hypernetworks = tuple(
        HypernetworkDocument.of(version, head=version.version == record.head, pinned=counts.get(version.version, 0))
        for version in line
    )
    return HypernetworkList(base=record.name, base_digest=record.digest, hypernetworks=hypernetworks)


def show_hypernetwork(database: Database, base: str, version: int) -> HypernetworkDetail:
    """One version with what is pinned to it and the guard's verdict about it.

    Raises:
        NotFoundError: no such base, or no such version of it.
    """
    with database.read() as session:
        bases = BaseRepository(session)
        record = bases.get(base)
        one = bases.hypernetwork(record.digest, version)
        pinned = HypernetworkRepository(session).pinned(record.digest, version, MOST_NAMED)
    guard = one.metrics.get("guard")
    return HypernetworkDetail.of(
        one, base=record.name, head=one.version == record.head, pinned=pinned.versions,
        pinned_by=PinnedDocument.of(pinned), guard=None if guard is None else GuardVerdict.model_validate(guard),
    )  # fmt: skip


def hypernetwork_artifact(database: Database, base: str, version: int) -> str:
    """The digest of a version's file. Raises NotFoundError: no such version, or it was collected."""
    with database.read() as session:
        artifact = BaseRepository(session).hypernetwork(base, version).artifact
    if artifact is None:
        raise NotFoundError("hypernetwork-collected", version=version)
    return artifact


def revert_hypernetwork(database: Database, base: str, version: int) -> HypernetworkReverted:
    """Make an existing version the head again; to be the head already is no change.

    New tasks are learned under it from now on, and the next tuning starts from it. Nothing that is published changes:
    every version stays pinned to its own hypernetwork. A job that runs now publishes under the one that it began with.

    Returns:
        `base`, `base_digest`, `version`, and `previous`: what was the head until now.

    Raises:
        NotFoundError: no such base, or no such version of it.
        ConflictError: the version was collected, or the head moved at this very moment.
    """
    with database.write() as session:
        bases = BaseRepository(session)
        registered = bases.get(base)
        document = HypernetworkReverted(
            base=registered.name, base_digest=registered.digest, version=version, previous=registered.head
        )
        if version != registered.head:
            bases.set_head(registered.digest, version, expected_head=registered.head)
            record(session, "hypernetwork.revert", f"{registered.name} v{version}", **document.to_json())
    return document
