"""What tests of carrying look at: the versions of a task, where `latest` went, why a task was refused."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from onboard.domain.names import LATEST
from onboard.domain.task import AliasMove, EmbeddingVersion
from onboard.registry.aliases import AliasRepository
from onboard.registry.services import Services
from onboard.registry.versions import VersionRepository
from onboard.versions.carry import Carried

HARMLESS, HARMFUL = 1e-4, 3.0  # steps of the head's weights, relative to their norm
LABELS = ("sad", "glad"), ("bad", "good")


def versions(services: Services, task: str) -> Sequence[EmbeddingVersion]:
    with services.database.read() as session:
        return VersionRepository(session).list(task=task)


def latest(services: Services, task: str) -> EmbeddingVersion:
    with services.database.read() as session:
        return VersionRepository(session).resolve(task)


def moves(services: Services, task: str) -> Sequence[AliasMove]:
    with services.database.read() as session:
        return AliasRepository(session).history(task, LATEST)


def everything(services: Services) -> Any:
    """All versions, and all moves of `latest`."""
    with services.database.read() as session:
        versions = VersionRepository(session).list()
    return versions, {version.task: moves(services, version.task) for version in versions}


def refused(done: Carried) -> str:
    """Why the one task was refused."""
    (outcome,) = done.outcomes
    assert (outcome.cleared, outcome.version) == (False, None)
    return outcome.reason


def names(done: Carried) -> list[str]:
    return [outcome.present.task for outcome in done.outcomes]
