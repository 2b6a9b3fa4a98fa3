"""Use cases: list a base's hypernetworks, show one with the versions pinned to it, and revert to one."""

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

MOST_NAMED: Final = 200  # maximum number of listed versions in use; all are counted


def list_hypernetworks(database: Database, base: str) -> HypernetworkList:
    """Return the hypernetworks of a base, oldest first, with the number of versions pinned to each.

    Args:
        base: its name or digest.

    Raises:
        NotFoundError: the base is not registered.
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
    """Return one hypernetwork with the versions pinned to it and the guard's verdict.

    Raises:
        NotFoundError: the base or the version does not exist.
    """
    with database.read() as session:
        bases = BaseRepository(session)
        record = bases.get(base)
        hypernetwork = bases.hypernetwork(record.digest, version)
        pinned = HypernetworkRepository(session).pinned(record.digest, version, MOST_NAMED)
    guard = hypernetwork.metrics.get("guard")
    return HypernetworkDetail.of(
        hypernetwork, base=record.name, head=hypernetwork.version == record.head, pinned=pinned.versions,
        pinned_by=PinnedDocument.of(pinned), guard=None if guard is None else GuardVerdict.model_validate(guard),
    )  # fmt: skip


def hypernetwork_artifact(database: Database, base: str, version: int) -> str:
    """Return the digest of a version's file. Raises NotFoundError if it does not exist or was collected."""
    with database.read() as session:
        artifact = BaseRepository(session).hypernetwork(base, version).artifact
    if artifact is None:
        raise NotFoundError("hypernetwork-collected", version=version)
    return artifact


def revert_hypernetwork(database: Database, base: str, version: int) -> HypernetworkReverted:
    """Make an existing version the head again. Has no effect if it is the head.

    New tasks are learned under it from now on, and the next tuning starts from it. Published versions do not change:
    each stays pinned to its hypernetwork. A running job publishes under the version that it started with.

    Returns:
        `base`, `base_digest`, `version`, and `previous`: the head before.

    Raises:
        NotFoundError: the base or the version does not exist.
        ConflictError: the version was collected, or the head has just moved.
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
