"""Use cases: the line of a base's hypernetworks, one version with all that stands under it, and going back to one."""

from __future__ import annotations

from dataclasses import asdict
from typing import Any, Final

from onboard.domain.task import BaseRecord, HypernetworkVersion
from onboard.errors import NotFoundError
from onboard.registry.audit import record
from onboard.registry.bases import BaseRepository
from onboard.registry.database import Database
from onboard.registry.hypernetworks import HypernetworkRepository

MOST_NAMED: Final = 200  # versions in use that are named; all of them are counted


def list_hypernetworks(database: Database, base: str) -> dict[str, Any]:
    """The line of a base, oldest first, and how many embedding versions are pinned to each, as a JSON document.

    Args:
        base: its name or digest.

    Raises:
        NotFoundError: no such base is registered.
    """
    with database.read() as session:
        bases = BaseRepository(session)
        found = bases.get(base)
        line = bases.hypernetworks(found.digest)
        counts = HypernetworkRepository(session).counts(found.digest)
    hypernetworks = [{**_document(each, found), "pinned": counts.get(each.version, 0)} for each in line]
    return {"base": found.name, "base_digest": found.digest, "hypernetworks": hypernetworks}


def show_hypernetwork(database: Database, base: str, version: int) -> dict[str, Any]:
    """One version with what is pinned to it and the guard's verdict about it, as a JSON document.

    Raises:
        NotFoundError: no such base, or no such version of it.
    """
    with database.read() as session:
        bases = BaseRepository(session)
        found = bases.get(base)
        one = bases.hypernetwork(found.digest, version)
        pinned = HypernetworkRepository(session).pinned(found.digest, version, MOST_NAMED)
    facts = asdict(pinned)
    return {
        **_document(one, found),
        "base": found.name,
        "pinned": facts.pop("versions"),
        "pinned_by": {**facts, "in_use": list(pinned.in_use)},
        "guard": one.metrics.get("guard"),
    }


def hypernetwork_artifact(database: Database, base: str, version: int) -> str:
    """The digest of a version's file. Raises NotFoundError: no such version, or it was collected."""
    with database.read() as session:
        artifact = BaseRepository(session).hypernetwork(base, version).artifact
    if artifact is None:
        raise NotFoundError(f"Hypernetwork version {version} was collected: nothing needed it any more.")
    return artifact


def revert_hypernetwork(database: Database, base: str, version: int) -> dict[str, Any]:
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
        found = bases.get(base)
        told = {"base": found.name, "base_digest": found.digest, "version": version, "previous": found.head}
        if version != found.head:
            bases.set_head(found.digest, version, expected_head=found.head)
            record(session, "hypernetwork.revert", f"{found.name} v{version}", **told)
    return told


def _document(version: HypernetworkVersion, base: BaseRecord) -> dict[str, Any]:
    return {**version.to_json(), "head": version.version == base.head}
